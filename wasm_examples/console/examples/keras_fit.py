# The same in Keras' API: compile, fit, evaluate.
import numpy as np

from tallow import keras

rng = np.random.default_rng(0)
x = rng.uniform(-1, 1, (1000, 2)).astype("float32")
y = (x[:, 0] * x[:, 1] > 0).astype("int64")
model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(2)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(0.01), loss=loss, metrics=["accuracy"])
model.fit(x, y, epochs=5, batch_size=32, validation_split=0.2)
