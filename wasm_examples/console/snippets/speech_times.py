# The times of passages in speech.
from transformers import pipeline

transcriber = pipeline("automatic-speech-recognition")
for chunk in transcriber("timer.wav", return_timestamps=True)["chunks"]:
    print(chunk["timestamp"], chunk["text"])
