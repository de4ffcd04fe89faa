"""Models that read waveforms: wav2vec2, HuBERT and WavLM."""
