"""The perceptron of the spec: its derivatives by number, and as text."""

from __future__ import annotations

from tests.ad.check import check_gradient, with_directional
from tests.ad.programs import mlp


def test_the_gradient_of_the_loss_is_the_central_difference():
    check_gradient(mlp(), "mse_grad.lambda0", {"B": 2, "D": 3})


def test_the_second_derivative_of_the_loss_is_the_central_difference_of_the_gradient():
    check_gradient(with_directional(mlp(), "mse_grad.lambda0"), "mse_grad.lambda0∂", {"B": 2, "D": 2})
