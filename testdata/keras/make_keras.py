"""Small nets in Keras' own files, with Keras' own answers.

    pip install keras jax h5py && KERAS_BACKEND=jax JAX_ENABLE_X64=1 python make_keras.py FOLDER        # Keras 3
    pip install "tensorflow-cpu==2.15.*" h5py && python make_keras.py FOLDER           # Keras 2

Each NAME.keras or NAME.h5 comes with NAME.samples.h5: input [16, inputs] float32 and output [16, outputs], what Keras
itself answers in float32 (nets of several ports: datasets named after the ports' layers, in float64).
"""
import pathlib
import sys

import keras
import numpy as np
from h5py import File

layers = keras.layers
folder = pathlib.Path(sys.argv[1])
version = "keras" + keras.__version__.split(".")[0]
rng = np.random.default_rng(11)
keras.utils.set_random_seed(11)


def randomise(net):
    """Biases and statistics are constants at first, which would hide their being mixed up."""
    for layer in net.layers:
        if hasattr(layer, "layers"):
            randomise(layer)
        elif isinstance(layer, layers.BatchNormalization):
            weights = [rng.uniform(0.5, 1.5, w.shape) for w in layer.get_weights()]
            layer.set_weights(weights)
        elif "Normalization" in type(layer).__name__ and version == "keras3" and not layer.name.startswith(("even", "norm")):
            layer.set_weights([rng.uniform(0.5, 1.5, w.shape) for w in layer.get_weights()])
        elif isinstance(layer, layers.Dense):
            weights = layer.get_weights()
            weights[1:] = [rng.uniform(-0.5, 0.5, w.shape) for w in weights[1:]]
            layer.set_weights(weights)


def save(name, net, inputs, endings):
    randomise(net)
    x = {key: rng.normal(size=(16, width)).astype(np.float32).astype(keras.backend.floatx())
         for key, width in inputs.items()}
    answers = net.predict(list(x.values()) if len(x) > 1 else next(iter(x.values())), verbose=0)
    if len(x) == 1:
        x = {"input": next(iter(x.values()))}
    answers = answers if isinstance(answers, list) else [answers]
    names = ["output"] if len(answers) == 1 else list(net.output_names)
    for ending in endings:
        net.save(folder / f"{version}_{name}.{ending}")
    with File(folder / f"{version}_{name}.samples.h5", "w", libver="earliest") as file:
        for key, value in [*x.items(), *zip(names, answers)]:
            file[key] = value


def normaliser(width):
    layer = layers.Normalization()
    layer.adapt(rng.normal(2.0, 3.0, size=(64, width)).astype(np.float32))
    return layer


save("scaled", keras.Sequential([
    keras.Input((3,)), normaliser(3), layers.Dense(6, "swish"), layers.Dropout(0.3), layers.Dense(5, "hard_sigmoid"),
    layers.Dense(4), layers.LeakyReLU(0.2), layers.Dense(2), layers.Rescaling(4.0, offset=1.5)
]), {"x": 3}, ("keras", "h5"))

save("batchnorm", keras.Sequential([
    keras.Input((3,)), layers.Dense(6, use_bias=False), layers.BatchNormalization(), layers.Activation("tanh"),
    layers.Dense(5, "gelu"), layers.BatchNormalization(scale=False, epsilon=1e-5), layers.Dense(4),
    layers.PReLU(alpha_initializer=keras.initializers.Constant(0.125)), layers.Dense(3, "elu"),
    layers.Dense(2, "softplus")
]), {"x": 3}, ("keras", "h5"))

inner = keras.Sequential([keras.Input((4,)), layers.Dense(5, "selu"), layers.Dense(4, "softsign")], name="inner")
x = keras.Input((3,), name="state")
y = layers.Dense(4, layers.LeakyReLU(0.05), name="first")(x)
y = inner(inner(y))
y = layers.ELU(0.5)(layers.Dense(3, name="last")(y))
save("nested", keras.Model(x, y), {"x": 3}, ("keras", "h5"))

# Weights and, by TensorFlow, arithmetic. Keras 3 on JAX goes on computing in float32.
keras.backend.set_floatx("float64")
if hasattr(keras, "config"):
    keras.config.set_dtype_policy("float64")
a, b = keras.Input((3,), name="pressure"), keras.Input((2,), name="wind")
x = layers.Concatenate(name="both")([layers.Dense(4, "tanh", name="left")(a), b])
y = layers.Dense(6, "relu6", name="hidden")(x)
y = layers.Add(name="residual")([x, y])
y = layers.LayerNormalization(epsilon=2**-10, name="even")(y)
gate = layers.Dense(6, "sigmoid", name="gate")(x)
y = layers.PReLU(alpha_initializer=keras.initializers.RandomUniform(0.1, 0.5), name="slopes")(y)
y = layers.Multiply(name="gated")([y, gate])
share = layers.Dense(3, "softmax", name="share")(y)
flux = layers.Average(name="flux")([layers.Dense(2, name="up")(y), layers.Dense(2, "exponential", name="down")(x), b])
save("branches", keras.Model([a, b], [share, flux]), {"pressure": 3, "wind": 2}, ("keras", "h5"))

# Layers that are several operations.
if version == "keras3":
    x = keras.Input((4,), name="x")
    y = layers.EinsumDense("ab,bc->ac", output_shape=6, bias_axes="c", activation="tanh_shrink", name="einsum")(x)
    y = layers.GroupNormalization(groups=3, epsilon=2**-6, name="groups")(y)
    z = layers.RMSNormalization(epsilon=2**-6, name="rms")(layers.Dense(6, "squareplus", name="plus")(y))
    y = layers.Add(name="sum")([layers.UnitNormalization(name="unit")(y), z])
    y = layers.Dense(5, "sparse_plus", name="sparse")(layers.ReLU(threshold=0.25, name="above")(y))
    w = layers.Dense(5, "sparse_sigmoid", name="hard")(z)
    save("compositions", keras.Model(x, [layers.Dot(1, name="dot")([y, w]), y]), {"x": 4}, ("keras", "h5"))

# Slices and operations as closures have them: a ratio of inputs, a part of them into the net, a limited answer.
if version == "keras3":
    from keras import ops

    x = keras.Input((5,), name="x")
    speed, rest, last = x[:, :2], x[..., 1:5:2], x[:, -1]
    y = layers.Concatenate(name="both")([ops.tanh(speed) * 2.0, ops.log(ops.square(rest) + 1)])
    y = layers.Dense(6, "tanh", name="hidden")(y)
    z = ops.concatenate([ops.exp(-ops.abs(y)), ops.sqrt(ops.sigmoid(y)) / np.array([1.0, 2.0, 0.5, 3.0, 0.25, 1.5])], axis=1)
    z = ops.relu(1.5 - z**2) - ops.gelu(z) + ops.gelu(z, approximate=False) * ops.leaky_relu(z, 0.1)
    left, right = ops.split(z, [4], axis=-1)
    w = ops.where(left > 0.25, left, 0.125 * ops.minimum(left, 0.5)) - ops.maximum(x[:, 0:1], -0.5)
    w = ops.add(ops.multiply(w, 3.0), ops.sum(right, axis=-1, keepdims=True)) ** 1.0
    u = ops.stack([last, ops.sin(last) ** 3.0, ops.mean(right, axis=1)], axis=1)
    v = ops.expand_dims(ops.clip(last, -0.5, 0.5), -1) // 0.25 + ops.take(x, [4, 0], axis=1) % 0.75
    answer = layers.Dense(3, name="answer")(ops.hstack([w, u, ops.softmax(v), ops.flip(v, axis=1)]))
    save("operations", keras.Model(x, [answer, w, ops.soft_shrink(u, 0.25)]), {"x": 5}, ("keras", "h5"))
