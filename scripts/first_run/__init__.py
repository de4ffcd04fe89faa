"""The parts of scripts/gpu_first_run."""
