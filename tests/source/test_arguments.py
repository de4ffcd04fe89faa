"""No argument is silently ignored: a function uses each parameter, raises on it, or is listed here with a reason.

The test reads the source of every function, public or not: a parameter that one function passes on may be dropped by
the next. `**kwargs` and `*args` count like any other. A leading underscore marks a parameter as unused in the
signature; names from PyTorch or Keras cannot have one. Private functions may ignore a parameter if their signature is
not their own: if other functions of the same name have it, or if no call names the function, as in a table.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from typing import NamedTuple

import pytest
from support.package_modules import MODULES, tree_of

# reason -> where (module.Class.function, * for anything) -> parameters. Keep it short.
UNUSED: dict[str, dict[str, str]] = {
    "attributes of ONNX nodes that tell how a model was fitted, or a type or shape that the operands have": {
        "onnx.operators.convolution.deform_conv": "kernel_shape",
        "onnx.operators.linear.gemm_broadcast": "broadcast",
        "onnx.operators.microsoft_fused.embed_layer_normalization": "mask_index_type",
        "onnx.operators.ml_linear.linear_classifier": "multi_class",
        "onnx.operators.ml_trees.*": "nodes_hitrates nodes_hitrates_as_tensor",
        "onnx.operators.normalization.*": "consumed_inputs",
        "onnx.operators.sequence.*": "dtype type",
        "onnx.operators.text.string_normalizer": "locale",
    },
    "attributes of ONNX nodes for training alone; in the opsets that have them, loaded models are for inference": {
        "onnx.operators.normalization.batch_normalization_in_inference": "momentum is_test",
        "onnx.operators.shape.dropout_*": "ratio is_test",
    },
    "precision of ONNX nodes that may be exceeded: halves are computed in float32": {
        "onnx.operators.*": "stash_type accuracy_level",
    },
    "speed or memory alone; there is one implementation, and nothing to choose": {
        "amp.autocast_mode.autocast.__init__": "cache_enabled",
        "autograd.functional.hessian": "vectorize outer_jacobian_strategy",
        "autograd.functional.jacobian": "vectorize strategy",
        "compat.attention.sdpa_kernel": "backends set_priority",
        "compat.packages.safetensors.*": "backend",
        "compiler.compile": "dynamic",
        "compiler.disable": "recursive reason",
        "distributed.optim.ZeroRedundancyOptimizer.__init__": "parameters_as_bucket_view",
        "export.capture.export": "strict",
        "func.*": "retain_graph",
        "functions.classification_loss.linear_cross_entropy": "options",
        "functions.top_level.*_norm": "cudnn_enabled",
        "func.jacfwd": "randomness",
        "sparse.check_sparse_tensor_invariants": "enable",
        "transformers.pipelines.base.Pipeline.__*__": "dtype torch_dtype",
        "sparse.creation.*": "pin_memory check_invariants",
        "sparse.shapes.c*": "non_blocking memory_format",
        "functions.casting.type": "non_blocking",
        "functions.storage.UntypedStorage.*": "non_blocking device",
        "functions.typed_storage.TypedStorage.*": "non_blocking device",
        "jit.*": "args kwargs",
        "keras.functions.control.scan": "unroll",
        "keras.functions.neural.dot_product_attention": "flash_attention",
        "keras.layers.attention.*": "flash_attention",
        "keras.layers.recurrent.*": "unroll use_cudnn",
        "keras.layers.rnn.RNN.__init__": "unroll",
        "keras.layers.text_vectorization.TextVectorization.adapt": "batch_size",
        "keras.layers.variable._variable": "autocast aggregation synchronization",
        "keras.naming.clear_session": "free_memory",
        "keras.steps.Steps.compile": "run_eagerly steps_per_execution jit_compile",
        "nn.module.Module.to": "non_blocking",
        "onnx.operators.attention.linear_attention": "chunk_size",
        "onnx.operators.index.topk": "sorted",
        "transformers.cache_utils.*": "backend config offloading kwargs",
        "transformers.modeling_saving.save": "save_function",
        "transformers.generation.*": "device",
        "nn.transformer.TransformerEncoder.__init__": "enable_nested_tensor mask_check",
        "nn.utils.clip_grad.*": "foreach",
        "ops.decomposition.linalg_svd*": "driver",
        "utils.checkpoint.checkpoint": "use_reentrant determinism_check debug",
    },
    "given to all of a kind, and needed by the others": {
        "nn.rotary.Unrotated.*": "start padding positions_BT",
        "sentence_transformers.losses.*.compute_loss_from_embeddings": "labels",
        "transformers.trainer_*.*Callback.on_*": "args state control kwargs",
        "trl.base.MethodTrainer.*": "num_items_in_batch prediction_loss_only ignore_keys",
        "trl.dpo.SyncReference.on_step_end": "args control",
        "cli.train_samples.SavesAtSignal.on_step_end": "args state kwargs",
        "trl.rewards.ModelReward.__call__": "columns",
        "sentence_transformers.*Callback.on_*": "args state control kwargs",
        "sentence_transformers.*.collator_of": "model",
        "transformers.trainer_models.embedding_noise.add": "inputs",
        "core.overrides.disabled": "types",
        "export.recorder.Recorder.*": "ready value backward tensor",
        "functions.complex_numbers.is_conj": "input",
        "fx.compile.recorder.CallRecorder.*": "ready value backward array",
        "nn.utils.prune.BasePruningMethod.__call__": "inputs",
        "nn.utils.prune.*.compute_mask": "t",
        "distributions.transform*.log_abs_det_jacobian": "y",
        "kernels.quantized.gguf_quantize.Q8_0": "importance",
        "models.gguf.importance._Sums.watch.hook": "module",
        "models.encoders.static_embedding.StaticEmbedding.forward": "mask_BT",
    },
    "without effect in PyTorch, Keras or transformers, too": {
        "models.vision.postprocessing.FormerMasks.post_process_instance_segmentation": (
            "mask_threshold overlap_mask_area_threshold"
        ),
        "autograd.api.grad": "only_inputs",
        "distributed.groups.init_process_group": "group_name",
        "functions.activation.gumbel_softmax": "eps",
        "functions.*pooling.*_with_indices": "return_indices",
        "functions.inspection.*pin*": "device",
        "functions.inspection.sparse_dim": "input",
        "keras.optimizers.optimizer.Optimizer.finalize_variable_values": "var_list",
        "keras.steps.Steps.compute_*": "x",
        "nn.parallel.data_parallel.DataParallel.__init__": "output_device",
        "nn.parallel.distributed.DistributedDataParallel.__init__": "output_device dim check_reduction",
        "random.fork_rng": "devices",
    },
    "the indices of the maxima tell all": {
        "compat.core_ops.max_pool2d_with_indices_backward": "kernel_size stride padding dilation ceil_mode",
    },
    "always so: the result is sorted and stable, no file's code is run, a device is looked for": {
        "accelerator.current_accelerator": "check_available",
        "masked.is_masked_tensor": "obj",
        "keras.functions.arrangement._segments.segments": "sorted",
        "keras.functions.statistics.argpartition": "kth",  # everything is sorted
        "keras.serialization.deserialize_keras_object": "safe_mode",
        "fx.graph.Graph.find_nodes": "sort",
        "ops.counting.unique": "sorted",
        "ops.sorting.*sort": "stable",
        "ops.sorting.topk": "sorted",
    },
    "there is nothing of the kind: one layout, no order or copy without values, complex factors are refused": {
        "compat.no_device.manual_seed": "seed",
        "core.meta.MetaArray.*": "args kwargs order copy",
        "distributed.collectives.barrier": "device_ids",
        "distributed.objects.*_list": "device",
        "jit.annotate": "the_type",
        "keras.layers.normalization.BatchNormalization.__init__": "renorm_clipping renorm_momentum",
        "compat.packages.tokenizers.encodings.Encoding.pad": "pad_token",  # no encoding keeps the text of its tokens
        "io.files.save": "pickle_module pickle_protocol",  # the format has one
        "models.parallel.TensorParallelLlama.__init__": "device",
        "testing.assert_close": "check_layout",
    },
    "the work of the one who calls: `tallow.core.arguments` converts what an op takes": {
        "ops.*": "dtype",
    },
    "the caller gives the same to all of them: a table of functions, a hook of a base class": {
        "transformers.pipelines.built_in.WordVectors.forward": "masks",
        "compat.packages.PackageFinder.find_spec": "path target",
        "compat.own_models.OwnModelsFinder.find_spec": "path target",
        "compat.stand_in.TorchFinder.find_spec": "path target",
        "compat.uninstalled.UninstalledFinder.find_spec": "path target",
        "data.collate.collate_*": "collate_fn_map",
        "data.tables._Labels.add": "line",
        "devices._Cpu.*": "array target non_blocking",
        "fx.interpreter.*": "target args kwargs",
        "fx.tracer.Tracer.getattr": "attr",
        "fx.tracer.Tracer.is_leaf_module": "module_qualified_name",
        "generation.*": "tokens",
        "io.pytorch_names.*": "*",  # the caller is the file
        "keras.callbacks.*": "epoch batch logs",
        "keras.layers.*.build": "*shape",
        "keras.layers.*.call": "training",
        "keras.layers.*.compute_output_spec": "count_weights",
        "keras.layers.*.compute_mask": "inputs previous_mask",
        "models.pretrained.PretrainedModel.parts_of": "state",
        "models.encoders.sentence_parts.Normalize.from_pretrained": "load",
        "models.speech.speech_encoder.SpeechEncoder.*": "index length",
        "models.speech.vits_flows.ElementwiseAffine.forward": "condition",
        "keras.layers.*.compute_output_shape": "*shape",
        "keras.layers.layer.Layer.build": "input_shape",
        "keras.models.*.call": "training",
        "keras.dtype_policies.deserialize": "custom_objects",
        "keras.optimizers.algorithms.Adagrad.initial_value": "slot",
        "keras.optimizers.algorithms.Lion.step_state": "steps",
        "keras.optimizers.optimizer.FromOptim.from_config": "custom_objects",
        "keras.optimizers.optimizer.Optimizer.*": "param slot",
        "optim.optimizer.Optimizer.update_rows": "*",
        "sparse.tensor.SparseTensor.numpy": "force",
        "kernels.bindings.*": "*",  # each `accepts` and each kernel of a name has that name's arguments
        "core.meta._Meta.*": "array target non_blocking",
        "models.*": "layer rows",
        "nn.cache.Uncached.append": "layer",
        "nn.candle.var_builder.*.get": "path init trainable",
        "autograd.second_order.DerivedLeaf.add": "owned",
        "ops.attention.attention_backward_array": "stats",
        "ops.maps.with_value": "input",
        "ops.matmul.rounded_*": "operand",
        "ops.pooling.max_pool_backward_array": "places",
        "optim.saved_state.SavedState.moment_shape": "name",
        "serving.http.completions.TextApi.besides": "texts",
        "text.piece_vocabularies.plain": "tokens config",
        "generation.speculative.PromptLookup.guess": "sampler",
        "transformers.cache_utils.*": "args layer_idx",
        "transformers.configuration.PreTrainedConfig.get_text_config": "decoder encoder",
        "transformers.forward_seq2seq.*": "attention_mask options",
        "transformers.generation.logits_process.*.change": "row rows",
        "transformers.generation.stopping_criteria.RowCriteria.__call__": "scores kwargs",
        "transformers.generation.warpers.*.change": "tokens row rows",
        "transformers.generation.watermarking.*": "row rows vocab_size",
        "text.template_sandbox.Sandbox.call": "context",
    },
    "a name that does nothing here, as its docstring says, so that programs for PyTorch run": {
        "compat.torch._C._functorch.is_gradtrackingtensor": "tensor",
        "compat.torch._C._functorch.is_legacy_batchedtensor": "tensor",
        "compat.torch._C._functorch.maybe_get_level": "tensor",
        "compat.torch._dynamo.graph_break": "args kwargs",
        "compat.torch._dynamo.mark_dynamic": "t index kwargs",
        "compat.torch._dynamo.optimize": "args kwargs",
        "compat.torch._guards.detect_fake_mode": "inputs",
        "compat.torch._inductor.list_mode_options": "dynamic",
        "compat.torch.autograd.graph.save_on_cpu": "device_type",
        "compat.torch.autograd.profiler.profile.key_averages": "group_by_stack_n",
        "compat.torch.autograd.profiler_util.EventList.table": "max_src_column_width",
        "compat.torch.compiler.set_enable_guard_collectives": "enabled",
        "compat.torch.compiler.substitute_in_graph": "original_fn kwargs",
        "compat.torch.cpu.current_stream": "device",
        "compat.torch.cpu.set_device": "device",
        "compat.torch.cpu.stream": "stream",
        "compat.torch.cpu.synchronize": "device",
        "compat.torch.cuda.random.get_rng_state": "device",
        "compat.torch.cuda.random.set_rng_state": "device",
        "compat.torch.distributed.algorithms._checkpoint.checkpoint_wrapper.checkpoint_wrapper": "checkpoint_impl",
        "compat.torch.distributed.fsdp.FullyShardedDataParallel.__init__": "*_prefetch limit_all_gathers",
        "compat.torch.distributed.fsdp.FullyShardedDataParallel.set_state_dict_type": "module *state_dict_config",
        "compat.torch.distributed.fsdp.FullyShardedDataParallel.summon_full_params": "rank0_only offload_to_cpu",
        "compat.torch.distributed.fsdp.wrap.CustomPolicy.__call__": "args kwargs",
        "compat.torch.distributed.fsdp.wrap.ModuleWrapPolicy.__call__": "args kwargs",
        "compat.torch.distributed.fsdp.wrap._module_wrap_policy": "nonwrapped_numel",
        "compat.torch.distributed.fsdp.wrap.always_wrap_policy": "args kwargs",
        "compat.torch.distributed.fsdp.wrap.lambda_auto_wrap_policy": "nonwrapped_numel",
        "compat.torch.distributed.monitored_barrier": "timeout wait_all_ranks",
        "compat.torch.distributed.set_debug_level": "debug_level",
        "compat.torch.fx.experimental.symbolic_shapes.free_symbols": "val",
        "compat.torch.fx.experimental.symbolic_shapes.has_free_symbols": "val",
        "compat.torch.fx.experimental.symbolic_shapes.has_static_value": "a",
        "compat.torch.fx.experimental.symbolic_shapes.optimization_hint": "fallback",
        "compat.torch._subclasses.fake_tensor.FakeTensorMode.__init__": "allow_fallback_kernels export",
        "compat.torch._subclasses.fake_tensor.FakeTensorMode.from_tensor": "options",
        "compat.torch.hub.help": "args kwargs",
        "compat.torch.hub.list": "args kwargs",
        "compat.torch.jit.enable_onednn_fusion": "enabled",
        "compat.torch.jit.fuser": "name",
        "compat.torch.jit.optimized_execution": "should_optimize",
        "compat.torch.jit.run_frozen_optimizations": "mod args kwargs",
        "compat.torch.library.Library.define": "alias_analysis tags",
        "compat.torch.*.Library.impl": "allow_override",
        "compat.torch.*._Kernel.call_boxed": "keyset",
        "compat.torch.library.custom_op": "tags",
        "compat.torch.library.define": "tags",
        "compat.torch.library.register_autocast": "op device_type cast_inputs lib",
        "compat.torch.library.register_fake": "allow_override",
        "compat.torch.library.register_torch_dispatch": "op torch_dispatch_class lib",
        "compat.torch.library.register_vmap": "op lib",
        "compat.torch.nn.attention.bias.CausalBias.__init__": "variant",
        "compat.torch.nn.attention.flex_attention.BlockMask.from_kv_blocks": "compute_q_blocks",
        "compat.torch.nn.attention.flex_attention.flex_attention": "kernel_options",
        "compat.torch.nn.attention.flex_attention.noop_mask": "batch head token_q token_kv",
        "compat.torch.onnx.register_custom_op_symbolic": "symbolic_name symbolic_fn opset_version",
        "compat.torch.onnx.symbolic_helper.parse_args": "arg_descriptors",
        "compat.torch.onnx.symbolic_helper.quantized_args": "arg_q_descriptors options",
        "compat.torch.onnx.unregister_custom_op_symbolic": "symbolic_name opset_version",
        "compat.torch.profiler.profile.__init__": "profile_memory with_stack with_modules",
        "compat.torch.profiler.profile.key_averages": "group_by_stack_n",
        "compat.torch.serialization.register_package": "priority tagger deserializer",
        "compat.torch.serialization.set_default_mmap_options": "flags",
        "compat.torch.set_flush_denormal": "mode",
        "compat.torch.utils._python_dispatch.return_and_correct_aliasing": "func args kwargs",
        "compat.torch.utils.checkpoint.check_backward_validity": "inputs",
        "compat.torch.utils.flop_counter.FlopCounterMode.__init__": "mods",
        "compat.torch.utils.flop_counter._mm": "b",
        "compat.torch.utils.generate_methods_for_privateuse1_backend": "args kwargs",
        "compat.torch.utils.hooks.warn_if_has_hooks": "tensor",
        "compat.torch.utils.rename_privateuse1_backend": "backend_name",
    },
    "one of its jobs is to swallow them": {
        "fx.graph_module.GraphModule.__new__": "args kwargs",
        "jit.ignore": "kwargs",
        "nn.linear.Identity.__init__": "args kwargs",
    },
}


class Parameter(NamedTuple):
    function: str  # module.Class.function, without `tallow.`
    name: str
    line: int

    def __str__(self) -> str:
        return f"{self.function}, line {self.line}: {self.name}"


def functions_of(tree: ast.AST, path: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield every function with its dotted name, except those of protocols and overloads, which have no body."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef):
            if any(ast.unparse(each) == "overload" for each in child.decorator_list):
                continue
            yield f"{path}.{child.name}", child
            yield from functions_of(child, f"{path}.{child.name}")
        elif isinstance(child, ast.ClassDef):
            if not any("Protocol" in ast.unparse(base) for base in child.bases):
                yield from functions_of(child, f"{path}.{child.name}")
        else:
            yield from functions_of(child, path)


def has_no_body(function: ast.FunctionDef) -> bool:
    """Return whether the function only raises, or is a hook method: `...`, a docstring or `return False`."""
    for statement in function.body:
        is_words = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        is_hook = isinstance(statement, ast.Return) and isinstance(statement.value, ast.Constant | None)
        if not (is_words or isinstance(statement, ast.Pass | ast.Raise) or (is_hook and is_method(function))):
            return False
    return is_method(function) or isinstance(function.body[-1], ast.Raise)


def is_method(function: ast.FunctionDef) -> bool:
    return bool(function.args.args) and function.args.args[0].arg in ("self", "cls")


def is_asked_by_python(name: str) -> bool:
    """Return whether it is a special method: Python or NumPy define its parameters, unless a user passes them."""
    return name.startswith("__") and name.endswith("__") and name not in ("__init__", "__call__", "__new__")


def unused_parameters(function: ast.FunctionDef) -> Iterator[ast.arg]:
    parameters = function.args
    rest = [each for each in (parameters.vararg, parameters.kwarg) if each is not None]
    read = {node.id for part in function.body for node in ast.walk(part) if isinstance(node, ast.Name)}
    for parameter in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs, *rest):
        name = parameter.arg
        if name not in read and name not in ("self", "cls", "ctx") and not name.startswith("_"):
            yield parameter


# Not when this file is imported: a run of all tests collects it in each of its processes.
@cache
def functions() -> dict[str, list[tuple[str, ast.FunctionDef]]]:
    """Return the functions of each module."""
    return {module: list(functions_of(tree_of(module), module.partition(".")[2] or "tallow")) for module in MODULES}


def called_names(module: str) -> set[str]:
    """Return the names that are called: `f(...)` and `self.f(...)`."""
    calls = [node.func for node in ast.walk(tree_of(module)) if isinstance(node, ast.Call)]
    return {f.id if isinstance(f, ast.Name) else f.attr for f in calls if isinstance(f, ast.Name | ast.Attribute)}


@cache
def dropped() -> list[Parameter]:
    """Return all parameters that no statement reads, if that may be a fault."""
    results = []
    taken = Counter(
        (function.name, parameter.arg)
        for found in functions().values()
        for _, function in found
        for parameter in (*function.args.args, *function.args.kwonlyargs)
    )
    for module, found in functions().items():
        called = called_names(module)
        for name, function in found:
            if is_asked_by_python(function.name) or has_no_body(function):
                continue
            is_private = function.name.startswith("_") and not function.name.startswith("__")
            if is_private and function.name not in called:
                continue
            results += [
                Parameter(name, parameter.arg, parameter.lineno)
                for parameter in unused_parameters(function)
                if not (is_private and taken[function.name, parameter.arg] > 1)
            ]
    return results


LISTED = [(where, name) for places in UNUSED.values() for where, names in places.items() for name in names.split()]


def excuses(where: str, name: str, parameter: Parameter) -> bool:
    return fnmatchcase(parameter.function, where) and fnmatchcase(parameter.name, name)


def test_no_argument_is_silently_ignored() -> None:
    silent = [str(p) for p in dropped() if not any(excuses(where, name, p) for where, name in LISTED)]
    assert not silent, "use it, raise on it, or list it in UNUSED with the reason:\n" + "\n".join(silent)


def test_the_list_has_no_stale_entries() -> None:
    stale = [f"{where}: {name}" for where, name in LISTED if not any(excuses(where, name, p) for p in dropped())]
    assert not stale, "no longer in the source:\n" + "\n".join(stale)


def test_stored_parameters_are_read_somewhere() -> None:
    read: set[str] = set()
    for module in MODULES:
        for node in ast.walk(tree_of(module)):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                read.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):  # used by getattr
                read.update(node.value.split())
    unread = {
        f"{name}: {parameter}"
        for found in functions().values()
        for name, function in found
        if function.name == "__init__"
        for parameter in stored_parameters(function)
        if parameter not in read
    }
    # as in PyTorch, which pins for any device
    assert unread == {"data.dataloader.DataLoader.__init__: pin_memory_device"}


def stored_parameters(function: ast.FunctionDef) -> Iterator[str]:
    """Return parameters that a function only stores as attributes."""
    uses = Counter(node.id for node in ast.walk(function) if isinstance(node, ast.Name))
    for node in function.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and uses[node.value.id] == 1:
            target = node.targets[0]
            if isinstance(target, ast.Attribute) and target.attr == node.value.id:
                yield target.attr


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("def f(a, *b, c=0, **d): return a", ["c", "b", "d"]),
        ("def f(a):\n  def g(): return a\n  return g", []),
        ("def f(a, _b): return a", []),
        ("def f(a): return 1", ["a"]),
        ("@overload\ndef f(a): ...\ndef f(a): return a", []),
        ("def f(a): raise ValueError", []),
        ("class C:\n  def f(self, a): return None", []),
        ("class C:\n  def f(self, a): return self.x", ["a"]),
    ],
)
def test_detection_of_ignored_parameters(code: str, names: list[str]) -> None:
    found = [f for _, f in functions_of(ast.parse(code), "m") if not has_no_body(f)]
    assert [parameter.arg for function in found for parameter in unused_parameters(function)] == names
