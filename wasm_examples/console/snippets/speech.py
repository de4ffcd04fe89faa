# Write down speech. The page puts timer.wav into the files; its model knows a hundred words.
from transformers import pipeline

transcriber = pipeline("automatic-speech-recognition")
transcriber("timer.wav")
