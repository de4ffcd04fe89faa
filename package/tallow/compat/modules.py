"""The tallow module for each PyTorch module."""

from __future__ import annotations

# Written as entry points are: "module", or "module:object" where tallow has an object in place of a module.
MODULES = {
    "torch": "tallow",
    "torch.accelerator": "tallow.accelerator",
    "torch.accelerator.memory": "tallow.accelerator",
    "torch.amp": "tallow.amp",
    "torch.amp.autocast_mode": "tallow.amp.autocast_mode",
    "torch.amp.grad_scaler": "tallow.amp.grad_scaler",
    "torch.autograd": "tallow.autograd",
    "torch.autograd.forward_ad": "tallow.autograd.forward_ad",
    "torch.autograd.function": "tallow.autograd.function",
    "torch.autograd.functional": "tallow.autograd.functional",
    "torch.distributions.transforms._InverseTransform": "tallow.distributions.transform:_InverseTransform",
    "torch.autograd.gradcheck": "tallow.autograd.gradcheck",
    "torch.autograd.grad_mode": "tallow.autograd",
    "torch.autograd.anomaly_mode": "tallow.autograd.anomaly",
    "torch.autograd.variable": "tallow.autograd",
    "torch.backends": "tallow.backends",
    "torch.classes": "tallow.compat.torch._ops:classes",
    "torch.compiler": "tallow.compiler",
    "torch.cuda": "tallow.cuda",
    "torch.cuda.amp": "tallow.cuda.amp",
    "torch.distributed": "tallow.distributed",
    "torch.distributed._tensor.device_mesh": "tallow.distributed.subgroups",
    "torch.distributed.optim": "tallow.distributed.optim",
    "torch.distributed.optim.zero_redundancy_optimizer": "tallow.distributed.optim",
    "torch.distributed.tensor.device_mesh": "tallow.distributed.subgroups",
    "torch.distributions": "tallow.distributions",
    "torch.distributions.constraint_registry": "tallow.distributions.constraint_registry",
    "torch.distributions.constraints": "tallow.distributions.constraints",
    "torch.distributions.kl": "tallow.distributions.kl",
    "torch.distributions.transforms": "tallow.distributions.transforms",
    "torch.distributions.utils": "tallow.distributions.utils",
    "torch.export": "tallow.export",
    "torch.export.dynamic_shapes": "tallow.export.dims",
    "torch.export.exported_program": "tallow.export.program",
    "torch.export.graph_signature": "tallow.export.signature",
    "torch.func": "tallow.func",
    "torch.functional": "tallow",
    "torch.fx": "tallow.fx",
    "torch.fx._symbolic_trace": "tallow.fx.tracer",
    "torch.fx.graph": "tallow.fx.graph",
    "torch.fx.graph_module": "tallow.fx.graph_module",
    "torch.fx.immutable_collections": "tallow.fx.immutable_collections",
    "torch.fx.interpreter": "tallow.fx.interpreter",
    "torch.fx.node": "tallow.fx.node",
    "torch.fx.passes": "tallow.fx.passes",
    "torch.fx.passes.graph_drawer": "tallow.fx.passes.graph_drawer",
    "torch.fx.passes.shape_prop": "tallow.fx.passes.shape_prop",
    "torch.fx.passes.utils": "tallow.fx.passes.utils",
    "torch.fx.passes.utils.matcher_utils": "tallow.fx.passes.utils.matcher_utils",
    "torch.fx.proxy": "tallow.fx.proxy",
    "torch.fx.subgraph_rewriter": "tallow.fx.subgraph_rewriter",
    "torch.jit": "tallow.jit",
    "torch.fft": "tallow.fft",
    "torch.linalg": "tallow.linalg",
    "torch.signal": "tallow.signal",
    "torch.signal.windows": "tallow.signal.windows",
    "torch.signal.windows.windows": "tallow.signal.windows",
    "torch.masked": "tallow.masked",
    "torch.nn": "tallow.nn",
    "torch.nn.attention": "tallow.compat.attention",
    "torch.nn.common_types": "tallow.compat.types",
    "torch.nn.functional": "tallow.nn.functional",
    "torch.nn.init": "tallow.nn.init",
    "torch.nn.modules": "tallow.nn",
    "torch.nn.modules.utils": "tallow.compat.sizes",
    "torch.nn.parallel": "tallow.nn.parallel",
    "torch.nn.parallel.distributed": "tallow.nn.parallel.distributed",
    "torch.nn.parameter": "tallow.nn.parameter",
    "torch.nn.utils": "tallow.nn.utils",
    "torch.nn.utils.parametrizations": "tallow.nn.utils.parametrizations",
    "torch.nn.utils.parametrize": "tallow.nn.utils.parametrize",
    "torch.ops": "tallow.compat.torch._ops:ops",
    "torch.optim": "tallow.optim",
    "torch.optim.lr_scheduler": "tallow.optim.lr_scheduler",
    "torch.optim.swa_utils": "tallow.optim.swa_utils",
    "torch.random": "tallow.random",
    "torch.sparse": "tallow.sparse",
    "torch.special": "tallow.special",
    "torch.storage": "tallow.functions.typed_storage",
    "torch.testing": "tallow.testing",
    "torch.types": "tallow.compat.types",
    "torch.return_types": "tallow.return_types",
    "torch.utils": "tallow.utils",
    "torch.utils.checkpoint": "tallow.utils.checkpoint",
    "torch.utils.data": "tallow.utils.data",
    "torch.version": "tallow.compat.version",
}
for _name in ("cpu", "cuda", "cuda.matmul", "cudnn", "mkl", "mkldnn", "mps", "openmp"):
    MODULES[f"torch.backends.{_name}"] = f"tallow.backends:{_name}"
_FILES_OF_UTILS = "clip_grad convert_parameters fusion init memory_format prune rnn spectral_norm weight_norm"
for _file in _FILES_OF_UTILS.split():
    MODULES[f"torch.nn.utils.{_file}"] = f"tallow.nn.utils.{_file}"
_FILES_OF_MODULES = (
    "activation adaptive batchnorm channelshuffle container conv distance dropout flatten fold instancenorm lazy "
    "linear loss module normalization padding pixelshuffle pooling rnn sparse transformer upsampling"
)
for _file in _FILES_OF_MODULES.split():
    MODULES[f"torch.nn.modules.{_file}"] = "tallow.nn"  # the files of tallow.nn differ
for _file in ("memory", "random", "streams", "graphs"):
    MODULES[f"torch.cuda.{_file}"] = "tallow.cuda"  # what else each has is in a file of the room
for _file in ("padding", "pooling"):
    MODULES[f"torch.nn.modules.{_file}"] = f"tallow.nn.{_file}"  # have the base classes under PyTorch's names
_FILES_OF_DISTRIBUTIONS = (
    "bernoulli beta binomial categorical cauchy chi2 continuous_bernoulli dirichlet distribution exp_family "
    "exponential fishersnedecor gamma generalized_pareto geometric gumbel half_cauchy half_normal independent "
    "inverse_gamma kumaraswamy laplace lkj_cholesky log_normal logistic_normal lowrank_multivariate_normal "
    "mixture_same_family multinomial multivariate_normal negative_binomial normal one_hot_categorical pareto poisson "
    "relaxed_bernoulli relaxed_categorical studentT transformed_distribution uniform von_mises weibull wishart"
)
for _file in _FILES_OF_DISTRIBUTIONS.split():
    MODULES[f"torch.distributions.{_file}"] = "tallow.distributions"
for _file in ("dataloader", "dataset", "distributed", "sampler"):
    MODULES[f"torch.utils.data.{_file}"] = f"tallow.data.{_file}"
_OPTIMIZERS = "adadelta adagrad adam adamax adamw asgd lbfgs nadam optimizer radam rmsprop rprop sgd sparse_adam"
for _file in _OPTIMIZERS.split():
    MODULES[f"torch.optim.{_file}"] = f"tallow.optim.{'adam' if _file == 'adamw' else _file}"

# Names that only the stand-in has: the version, base classes that programs ask `isinstance` of, and functions with the
# name of their module, which they hide as in PyTorch.
OWN = {
    "torch.Future": "tallow.compat.torch.futures:Future",
    "torch.fork": "tallow.compat.torch.jit:fork",
    "torch.wait": "tallow.compat.torch.jit:wait",
    "torch.jit.Future": "tallow.compat.torch.futures:Future",
    "torch.nn.modules.lazy.LazyModuleMixin": "tallow.nn.lazy:_Lazy",
    "torch.ScriptModule": "tallow.fx.compile.scripted:ScriptModule",
    "torch.Event": "tallow.cuda:Event",
    "torch.Stream": "tallow.cuda:Stream",
    "torch.to_dlpack": "tallow.compat.torch.utils.dlpack:to_dlpack",
    "torch.TypedStorage": "tallow.functions.typed_storage:TypedStorage",
    "torch.UntypedStorage": "tallow.functions.storage:UntypedStorage",
    "torch.StorageBase": "tallow.functions.storage:UntypedStorage",
    "torch.__version__": "tallow.compat.version:__version__",
    "torch.version.__version__": "tallow.compat.version:__version__",
    "torch.fx._symbolic_trace.wrap": "tallow.fx.patching:wrap",
    "torch.torch": "torch",
    "torch._assert": "tallow.fx.assertions:_assert",
    "torch.distributions.transforms._InverseTransform": "tallow.distributions.transform:_InverseTransform",
    "torch.autograd.gradcheck": "tallow.autograd.gradcheck:gradcheck",
    "torch.nn.modules.batchnorm._BatchNorm": "tallow.nn.channel_normalization:_BatchNorm",
    "torch.nn.modules.batchnorm._NormBase": "tallow.nn.channel_normalization:_NormBase",
    "torch.nn.modules.conv._ConvNd": "tallow.nn.convolution:_ConvNd",
    "torch.nn.modules.conv._ConvTransposeNd": "tallow.nn.convolution:_ConvTransposeNd",
    "torch.nn.modules.dropout._DropoutNd": "tallow.nn.dropout:_DropoutNd",
    "torch.nn.modules.instancenorm._InstanceNorm": "tallow.nn.channel_normalization:_InstanceNorm",
    "torch.nn.modules.linear.NonDynamicallyQuantizableLinear": "tallow.nn.linear:NonDynamicallyQuantizableLinear",
    "torch.nn.modules.loss._Loss": "tallow.nn.loss:_Loss",
    "torch.nn.modules.loss._WeightedLoss": "tallow.nn.loss:_WeightedLoss",
    "torch.nn.modules.module._EXTRA_STATE_KEY_SUFFIX": "tallow.nn.stateful:EXTRA_STATE",
    "torch.nn.modules.module._IncompatibleKeys": "tallow.nn.state:IncompatibleKeys",
    "torch.nn.utils.spectral_norm": "tallow.nn.utils.spectral_norm:spectral_norm",
    "torch.nn.utils.weight_norm": "tallow.nn.utils.weight_norm:weight_norm",
    "torch.optim.lr_scheduler._LRScheduler": "tallow.optim.lr_scheduler:LRScheduler",
}
for _hook in ("forward_hook", "forward_pre_hook", "full_backward_hook", "full_backward_pre_hook"):
    OWN[f"torch.nn.modules.module.register_module_{_hook}"] = f"tallow.nn.hooks:register_module_{_hook}"
