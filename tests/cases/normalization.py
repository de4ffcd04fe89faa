"""layer_norm, rms_norm and the normalizations over channels."""

from __future__ import annotations

from typing import Any

from cases import case, functional, integers, normal

case("rms_norm", lambda m, x, w: m.nn.functional.rms_norm(x, (4,), w, 1e-5), normal(3, 4), normal(4))
case("rms_norm", lambda m, x, w: m.nn.functional.rms_norm(x, (3, 4), w), normal(2, 3, 4), normal(3, 4))
case("rms_norm", lambda m, x: m.rms_norm(x, [4], eps=0.1), normal(2, 3, 4))
case("rms_norm", lambda m, x, w: m.rms_norm(x, [4], w), normal(4), normal(4))
case("rms_norm", lambda m, x: m.nn.functional.rms_norm(x, (4,)), normal(0, 4))
case("layer_norm", lambda m, x, w, b: m.nn.functional.layer_norm(x, (4,), w, b), normal(3, 4), normal(4), normal(4))
case(
    "layer_norm",
    lambda m, x, w, b: m.layer_norm(x, (3, 4), w, b, eps=1e-3),
    normal(2, 3, 4),
    normal(3, 4),
    normal(3, 4),
)
case("layer_norm", lambda m, x, w: m.nn.functional.layer_norm(x, (4,), w), normal(2, 3, 4), normal(4))
case("layer_norm", lambda m, x, b: m.nn.functional.layer_norm(x, (4,), None, b), normal(2, 3, 4), normal(4))
case("layer_norm", lambda m, x: m.nn.functional.layer_norm(x, [4]), normal(0, 4))


def in_training(name: str, **options: Any) -> Any:
    """Return a call that gives the result and the updated running statistics."""

    def call(m: Any, x: Any, *parameters: Any) -> Any:
        like = {"dtype": x.dtype, "device": x.device}
        mean, var = m.zeros(x.shape[1], **like), m.ones(x.shape[1], **like)
        return getattr(m.nn.functional, name)(x, mean, var, *parameters, **options), mean, var

    return call


def in_evaluation(m: Any, x: Any, stats: Any, *parameters: Any, name: str = "batch_norm", **options: Any) -> Any:
    mean, var = stats.to(x.dtype)
    return getattr(m.nn.functional, name)(x, mean, var + 1, *parameters, **options)


x1, x2, x3 = normal(4, 6), normal(3, 6, 5), normal(2, 6, 3, 4)
w, b = normal(6), normal(6)
stats = integers(2, 6, high=3)

TRAINING, EVALUATION = "batch_norm_in_training", "batch_norm_in_evaluation"
case(TRAINING, in_training("batch_norm", training=True), x1, w, b)
case(TRAINING, in_training("batch_norm", training=True, momentum=0.3, eps=0.1), x2, w, b)
case(TRAINING, in_training("batch_norm", training=True), x3)
case(TRAINING, lambda m, x, w: m.nn.functional.batch_norm(x, None, None, w, training=True), x3, w)
case(TRAINING, lambda m, x, b: m.nn.functional.batch_norm(x, None, None, None, b, True), x3, b)
case(EVALUATION, in_evaluation, x1, stats, w, b)
case(EVALUATION, lambda m, x, s, w, b: in_evaluation(m, x, s, w, b, eps=0.1), x3, stats, w, b)
case(EVALUATION, in_evaluation, x2, stats)
case(EVALUATION, lambda m, x, s, w: in_evaluation(m, x, s, w, None), x2, stats, w)
case("group_norm", functional("group_norm", num_groups=2), x1)
case("group_norm", lambda m, x, w, b: m.nn.functional.group_norm(x, 3, w, b), x3, w, b)
case("group_norm", lambda m, x, w: m.group_norm(x, 1, w, eps=0.1), x2, w)
case("group_norm", lambda m, x, w: m.nn.functional.group_norm(x, 6, w), x2, w)
case("instance_norm", functional("instance_norm"), x2)
case("instance_norm", in_training("instance_norm"), x3, w, b)
case(
    "instance_norm",
    lambda m, x, s, w, b: in_evaluation(m, x, s, w, b, name="instance_norm", use_input_stats=False),
    x2,
    stats,
    w,
    b,
)
case("local_response_norm", functional("local_response_norm", size=3), x3)
case("local_response_norm", functional("local_response_norm", size=4, alpha=0.5, beta=0.6, k=2.0), x2)
case("local_response_norm", functional("local_response_norm", size=30, alpha=9.0, beta=0.6, k=2.0), x2)  # all channels
case("normalize", functional("normalize"), x3)
case("normalize", functional("normalize", p=1.0, dim=-1), x3)
case("normalize", functional("normalize", p=3, dim=(0, 2), eps=0.1), x3)
case("cosine_similarity", functional("cosine_similarity"), x1, normal(4, 6))
case("cosine_similarity", lambda m, a, b: m.cosine_similarity(a, b, dim=-1), x3, normal(6, 1, 4))
case("pairwise_distance", functional("pairwise_distance"), x1, normal(4, 6))
case("pairwise_distance", lambda m, a, b: m.pairwise_distance(a, b, p=1.0, keepdim=True), x1, normal(6))
