"""Keras' MNIST example on its torch backend, which trains."""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch
from keras import layers
from prelude import show

labels = np.arange(96) % 10
images = np.zeros((96, 28, 28, 1), "float32")
for picture, label in zip(images, labels, strict=True):
    picture[2 * label : 2 * label + 8, 4:24] = 1
model = keras.Sequential(
    [
        keras.Input(shape=(28, 28, 1)),
        layers.Conv2D(8, kernel_size=(3, 3), activation="relu"),
        layers.MaxPooling2D(pool_size=(2, 2)),
        layers.Conv2D(16, kernel_size=(3, 3), activation="relu"),
        layers.MaxPooling2D(pool_size=(2, 2)),
        layers.Flatten(),
        layers.Dropout(0.0),  # the libraries draw other numbers
        layers.Dense(10, activation="softmax"),
    ]
)
rng = np.random.RandomState(0)
model.set_weights([rng.uniform(-0.2, 0.2, w.shape).astype("float32") for w in model.get_weights()])
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
targets = keras.utils.to_categorical(labels, 10)
history = model.fit(images, targets, batch_size=32, epochs=3, validation_split=0.25, shuffle=False, verbose=0).history
show(*history["loss"], *history["val_loss"], torch.tensor(model.predict(images, verbose=0)))
