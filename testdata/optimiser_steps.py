"""Reference figures for lockstep/train/optimiser_test.cpp: ten steps of each rule by optax, in float64.

    python optimiser_steps.py > optimiser_steps.csv     # needs jax and optax (written with jax 0.12.0, optax 0.2.8)

The loss is sum_i w_i (x_i - c_i)^2 / 2 with w = 1, 4, 0.25, c = 1, -2, 0.5, from x = 0, rate 0.1. Columns: rule, step
(from 1), x_0, x_1, x_2. optax's adamw decays apart from the gradient; decay before the others is added to it.
"""
import jax

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
import optax

RATE = 0.1
RULES = {
    "sgd": optax.sgd(RATE, momentum=0.9),
    "nesterov": optax.sgd(RATE, momentum=0.9, nesterov=True),
    "adam": optax.adam(RATE),
    "adam_decay": optax.chain(optax.add_decayed_weights(0.3), optax.adam(RATE)),
    "adamw": optax.adamw(RATE, weight_decay=0.3),
    "adamax": optax.adamax(RATE),
    "radam": optax.radam(RATE),
}
weights, centre = jnp.array([1.0, 4.0, 0.25]), jnp.array([1.0, -2.0, 0.5])
print("rule,step,x0,x1,x2")
for name, rule in RULES.items():
    x = jnp.zeros(3)
    state = rule.init(x)
    for step in range(1, 11):
        updates, state = rule.update(weights * (x - centre), state, x)
        x = optax.apply_updates(x, updates)
        print(name, step, *(repr(float(v)) for v in x), sep=",")
