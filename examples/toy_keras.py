"""The five points of toy_classification.py with the Keras API: define the network, compile, fit, evaluate.

Run it: python examples/toy_keras.py
"""

import numpy as np

import tallow as tl
from tallow import keras
from tallow.keras import layers

X_TRAIN = np.array([[-1.2, 3.1], [-0.9, 2.9], [-0.5, 2.6], [2.3, -1.1], [2.7, -1.5]], dtype="float32")
Y_TRAIN = np.array([0, 0, 0, 1, 1])
X_TEST = np.array([[-0.8, 2.8], [2.6, -1.6]], dtype="float32")
Y_TEST = np.array([0, 1])


def main() -> tuple[list[float], float, float]:
    """Train and evaluate; return the loss of each epoch and the accuracy on both sets."""
    tl.manual_seed(123)
    model = keras.Sequential(
        [
            keras.Input(shape=(2,)),
            layers.Dense(30, activation="relu"),
            layers.Dense(20, activation="relu"),
            layers.Dense(2, activation="softmax"),
        ]
    )
    model.summary()
    model.compile(
        optimizer=keras.optimizers.SGD(learning_rate=0.5), loss="sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    history = model.fit(X_TRAIN, Y_TRAIN, batch_size=2, epochs=3)

    in_training, in_test = (
        model.evaluate(x, y, verbose=0, return_dict=True)["accuracy"] for x, y in ((X_TRAIN, Y_TRAIN), (X_TEST, Y_TEST))
    )
    print(f"accuracy {in_training:.0%} on the training set, {in_test:.0%} on the test set")
    print("probabilities of the classes:", model.predict(X_TEST, verbose=0), sep="\n")
    return history.history["loss"], in_training, in_test


if __name__ == "__main__":
    main()
