"""What the tests share: where the repository's files lie."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def testdata():
    return ROOT / "testdata"


@pytest.fixture(scope="session")
def examples():
    return ROOT / "examples"


@pytest.fixture(scope="session")
def ocean(testdata):
    import lockstep

    return lockstep.load(testdata / "ocean_relu_32_128_128_31.safetensors")


@pytest.fixture(scope="session")
def lorenz_net(testdata):
    import lockstep

    return lockstep.load(testdata / "lorenz_tanh_3_100_3.safetensors")
