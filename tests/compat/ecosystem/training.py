"""Cases of packages that train, explain and measure models."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
from comparison import case, filled, normal, tokens, trained


def network(torch: Any, rng: np.random.RandomState) -> Any:
    """Return a small classifier."""
    nn = torch.nn
    return filled(torch, nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)), rng)


def batches(torch: Any, rng: np.random.RandomState) -> Any:
    """Return a loader of 24 rows in batches of eight, in order."""
    data = torch.utils.data.TensorDataset(normal(torch, rng, 24, 6), tokens(torch, rng, 3, 24))
    return torch.utils.data.DataLoader(data, batch_size=8)


@case
def lightning(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Fit and validate for two epochs, save a checkpoint and load it."""
    import tempfile

    import lightning
    from lightning.fabric.plugins.environments import LightningEnvironment

    class Model(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers, self.losses = network(torch, np.random.RandomState(1)), []  # type: ignore[var-annotated]

        def loss(self, batch: Any) -> Any:
            return torch.nn.functional.cross_entropy(self.layers(batch[0]), batch[1])

        def training_step(self, batch: Any, index: int) -> Any:
            self.losses.append(float(self.loss(batch)))
            return self.loss(batch)

        def validation_step(self, batch: Any, index: int) -> None:
            self.log("validation", self.loss(batch))

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]

    model, loader = Model(), batches(torch, rng)
    quiet = {
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "plugins": [LightningEnvironment()],
    }
    with tempfile.TemporaryDirectory() as folder:
        options = {"max_epochs": 2, "accelerator": "cpu", "enable_checkpointing": False, "gradient_clip_val": 0.5}
        trainer = lightning.Trainer(default_root_dir=folder, **options, **quiet)
        trainer.fit(model, loader, loader)
        trainer.save_checkpoint(f"{folder}/model.ckpt")
        again = Model.load_from_checkpoint(f"{folder}/model.ckpt")
    return [model.losses, trainer.callback_metrics["validation"], *model.parameters(), *again.parameters()]


@case
def ignite(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A supervised trainer, and an evaluator with metrics."""
    from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
    from ignite.metrics import Accuracy, Loss

    model, loss, losses = network(torch, rng), torch.nn.CrossEntropyLoss(), []  # type: ignore[var-annotated]
    trainer = create_supervised_trainer(model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), loss)
    trainer.add_event_handler(Events.ITERATION_COMPLETED, lambda engine: losses.append(engine.state.output))
    loader = batches(torch, rng)
    trainer.run(loader, max_epochs=2)
    evaluator = create_supervised_evaluator(model, metrics={"accuracy": Accuracy(), "loss": Loss(loss)})
    metrics = evaluator.run(loader).metrics
    return [losses, metrics["accuracy"], metrics["loss"], *model.parameters()]


@case
def skorch(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A classifier in the manner of scikit-learn."""
    from skorch import NeuralNetClassifier

    x, y = rng.standard_normal((24, 6)).astype("float32"), rng.randint(0, 3, 24)
    options = {"max_epochs": 3, "lr": 0.1, "train_split": None, "verbose": 0, "iterator_train__shuffle": False}
    net = NeuralNetClassifier(network(torch, rng), criterion=torch.nn.CrossEntropyLoss, **options)
    net.fit(x, y)
    return [net.history[:, "train_loss"], net.predict_proba(x), net.score(x, y)]


@case
def higher(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """The gradient through two steps of an inner loop."""
    import higher

    model = network(torch, rng)
    optimizer, (x, y) = torch.optim.SGD(model.parameters(), lr=0.1), next(iter(batches(torch, rng)))
    with higher.innerloop_ctx(model, optimizer, copy_initial_weights=False) as (inner, steps):
        for _ in range(2):
            steps.step(torch.nn.functional.cross_entropy(inner(x), y))
        loss = torch.nn.functional.cross_entropy(inner(x), y)
        loss.backward()
    return [loss, *(p.grad for p in model.parameters())]


@case
def opacus(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Gradients of each sample, clipped, without noise."""
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    model = GradSampleModule(network(torch, rng).train())
    x, y = next(iter(batches(torch, rng)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = DPOptimizer(optimizer, noise_multiplier=0.0, max_grad_norm=0.5, expected_batch_size=8)
    torch.nn.functional.cross_entropy(model(x), y).backward()
    samples = [p.grad_sample.clone() for p in model.parameters()]
    optimizer.step()
    return [*samples, *model.parameters()]


@case
def captum(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Attributions by twelve methods, among them LRP and DeepLift."""
    from captum import attr

    model, x = network(torch, rng), normal(torch, rng, 4, 6)
    options: dict[str, dict[str, Any]] = {
        "IntegratedGradients": {"n_steps": 10},
        "Occlusion": {"sliding_window_shapes": (2,)},
    }
    names = "Saliency InputXGradient IntegratedGradients DeepLift GuidedBackprop Deconvolution FeatureAblation LRP"
    methods = [getattr(attr, name)(model) for name in [*names.split(), "Occlusion"]]
    found = [method.attribute(x, target=1, **options.get(type(method).__name__, {})) for method in methods]
    found.append(attr.LayerConductance(model, model[0]).attribute(x, target=1, n_steps=10))
    found.append(attr.LayerActivation(model, model[1]).attribute(x))
    found.append(attr.LayerGradCam(model, model[0]).attribute(x, target=1))
    return found


@case
def pytorch_metric_learning(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Six losses and a miner."""
    from pytorch_metric_learning import losses, miners

    x, y, found = normal(torch, rng, 12, 5), tokens(torch, rng, 3, 12), []  # type: ignore[var-annotated]
    pairs = miners.MultiSimilarityMiner()(x, y)
    for name in (
        "TripletMarginLoss",
        "ContrastiveLoss",
        "NTXentLoss",
        "MultiSimilarityLoss",
        "CircleLoss",
        "SupConLoss",
    ):
        z = x.clone().requires_grad_()
        loss = getattr(losses, name)()(z, y, pairs)
        loss.backward()
        found += [loss, z.grad]
    return found


@case
def pytorch_tabnet(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """The network of TabNet."""
    from pytorch_tabnet.tab_network import TabNet

    groups = torch.eye(6)
    model = filled(torch, TabNet(6, 3, n_d=4, n_a=4, n_steps=2, group_attention_matrix=groups), rng)
    x = normal(torch, rng, 8, 6)
    return trained(torch, model, lambda: model(x)[0] + model(x)[1])


@case
def torchmetrics__many(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Twenty-two metrics of classes, numbers, images, sound and retrieval."""
    from torchmetrics import functional as M
    from torchmetrics.functional import image

    scores, labels = torch.softmax(normal(torch, rng, 20, 4), -1), tokens(torch, rng, 4, 20)
    x, y = normal(torch, rng, 20), normal(torch, rng, 20)
    classes: dict[str, Any] = {"task": "multiclass", "num_classes": 4}
    kinds = "accuracy precision recall f1_score auroc average_precision cohen_kappa matthews_corrcoef confusion_matrix"
    found = [getattr(M, kind)(scores, labels, **classes) for kind in f"{kinds} calibration_error".split()]
    kinds = "mean_squared_error mean_absolute_error r2_score pearson_corrcoef spearman_corrcoef explained_variance"
    found += [getattr(M, kind)(x, y) for kind in f"{kinds} kendall_rank_corrcoef".split()]
    a, b = (torch.from_numpy(rng.rand(1, 1, 24, 24).astype("float32")) for _ in range(2))
    found.append(M.cosine_similarity(scores, scores.flip(0)))
    found += [image.peak_signal_noise_ratio(a, b, 1.0), image.structural_similarity_index_measure(a, b)]
    relevant = labels > 1
    return [*found, M.retrieval_average_precision(x, relevant), M.retrieval_normalized_dcg(x, relevant)]


@case
def stable_baselines3(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """An actor and a critic: actions, values, and the gradient of PPO's policy."""
    from gymnasium import spaces
    from stable_baselines3.common.policies import ActorCriticPolicy

    box = spaces.Box(-1, 1, (4,))
    policy = filled(torch, ActorCriticPolicy(box, spaces.Discrete(3), lambda _: 1e-3), rng)
    x, actions = normal(torch, rng, 6, 4), tokens(torch, rng, 3, 6)

    def compute() -> Any:
        values, log_prob, entropy = policy.evaluate_actions(x, actions)
        return values.square().mean() + log_prob.mean() + entropy.mean()

    return trained(torch, policy, compute)


def after_steps(torch: Any, rng: np.random.RandomState, make: Any) -> list[Any]:
    """Return the weights after four steps of an optimizer."""
    model, (x, y) = network(torch, rng), next(iter(batches(torch, rng)))
    optimizer = make(model.parameters())
    getattr(optimizer, "train", int)()
    for _ in range(4):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return list(model.parameters())


@case
def torch_optimizer(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Twenty-four optimizers over four steps."""
    import torch_optimizer

    kinds = (
        "A2GradExp AccSGD AdaBelief AdaBound AdaMod Adafactor AggMo Apollo DiffGrad LARS Lamb MADGRAD NovoGrad PID "
        "QHAdam QHM Ranger RangerQH RangerVA SGDP SGDW Shampoo SWATS Yogi"
    )
    found = []
    for kind in kinds.split():
        options: dict[str, Any] = {"lr": None} if kind == "Adafactor" else {}
        found += after_steps(torch, rng, lambda p, k=kind, o=options: getattr(torch_optimizer, k)(p, **o))  # type: ignore[misc]
    return found


@case
def lion_pytorch(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Four steps of Lion."""
    from lion_pytorch import Lion

    return after_steps(torch, rng, lambda p: Lion(p, lr=1e-2, weight_decay=0.1))


@case
def schedulefree(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Four steps of AdamW and SGD without a schedule."""
    import schedulefree as s

    first = after_steps(torch, rng, lambda p: s.AdamWScheduleFree(p, lr=1e-2))
    return [*first, *after_steps(torch, rng, lambda p: s.SGDScheduleFree(p, lr=0.1))]


@case
def pytorch_warmup(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """The rates of a linear warm-up with a cosine."""
    import pytorch_warmup

    optimizer = torch.optim.AdamW(network(torch, rng).parameters(), lr=1.0)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    warmup, rates = pytorch_warmup.LinearWarmup(optimizer, 5), []
    for _ in range(8):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        with warmup.dampening():
            cosine.step()
    return [rates]


@case
def torchinfo(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Parameters and multiplications of a convolutional network."""
    from torchinfo import summary

    nn = torch.nn
    found = summary(nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3)), (1, 3, 16, 16), verbose=0)
    return [found.total_params, found.total_mult_adds, found.total_output_bytes]


@case
def torchsummary(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """The numbers of the printed table."""
    from torchsummary import summary

    nn, text = torch.nn, io.StringIO()
    with contextlib.redirect_stdout(text):
        summary(nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()), (3, 16, 16), device="cpu")
    return [[float(word) for word in text.getvalue().replace(",", "").split() if word.replace(".", "").isdigit()]]


@case
def thop(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Operations of a convolutional network."""
    from thop import profile

    nn = torch.nn
    return list(profile(nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()), (torch.zeros(1, 3, 16, 16),), verbose=False))


@case
def ptflops(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Operations of a convolutional network, counted by layers."""
    from ptflops import get_model_complexity_info

    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 14 * 14, 5))
    options = {"as_strings": False, "print_per_layer_stat": False, "backend": "pytorch"}
    return list(get_model_complexity_info(model, (3, 16, 16), **options))


@case
def torchviz(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """The parameters of a graph by name, and its input."""
    from torchviz import make_dot

    model = network(torch, rng)
    text = make_dot(model(normal(torch, rng, 2, 6)).sum(), params=dict(model.named_parameters())).source
    return [text.count(f"\n {name}\n") for name, _ in model.named_parameters()] + [text.count("AccumulateGrad")]


@case
def fastai(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A Learner: a cycle of one epoch, frozen layers, predictions, and a model that is saved and loaded."""
    import tempfile

    from fastai.basics import DataLoader, DataLoaders, Learner, accuracy
    from fastai.callback import progress, schedule  # noqa: F401 - they add methods to Learner

    x, y = normal(torch, rng, 24, 6), tokens(torch, rng, 3, 24)
    loaders = [DataLoader(list(zip(x, y, strict=True)), bs=8) for _ in range(2)]
    model, loss = network(torch, rng), torch.nn.CrossEntropyLoss()

    def split(model: Any) -> list[Any]:
        return [list(model[0].parameters()), list(model[2].parameters())]

    with tempfile.TemporaryDirectory() as folder:
        learner = Learner(DataLoaders(*loaders), model, loss, metrics=accuracy, splitter=split, path=folder)
        with learner.no_bar(), learner.no_logging():
            learner.fit_one_cycle(2, 0.01)
            learner.freeze()
            learner.fit(1, 0.01)
            learner.unfreeze()
            learner.fit(1, slice(0.001, 0.01))
            learner.save("model")
            predicted, targets = learner.get_preds(dl=loaders[1])
            weights = [p.detach().clone() for p in model.parameters()]
            learner.fit(1, 0.1)
            learner.load("model")
            found = [learner.recorder.losses, *learner.recorder.values, *learner.validate()]
    return [*found, predicted, targets, *weights, *model.parameters()]
