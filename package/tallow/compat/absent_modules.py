"""Names of PyTorch that mean nothing on tallow, by module: of sharded models, remote calls, launchers."""

from __future__ import annotations

# What to use in their place -> module -> its names.
_BY_HINT: dict[str, dict[str, str]] = {
    "scaled_dot_product_attention chooses its kernel itself": {
        "torch.nn.attention": (
            "activate_flash_attention_impl current_flash_attention_impl list_flash_attention_impls "
            "register_flash_attention_impl restore_flash_attention_impl"
        ),
    },
    "tl.compile chooses its guards and its plan itself": {
        "torch.compiler": (
            "get_default_backend keep_portable_guards_unsafe keep_tensor_guards_unsafe load_cache_artifacts "
            "load_compiled_function nested_compile_region save_cache_artifacts set_default_backend "
            "skip_all_guards_unsafe skip_guard_on_all_nn_modules_unsafe skip_guard_on_globals_unsafe "
            "skip_guard_on_inbuilt_nn_modules_unsafe"
        ),
    },
    "the graph of an exported program is in its attribute graph": {
        "torch.export": (
            "AdditionalInputs CustomDecompTable ExportBackwardSignature FlatArgsAdapter ModuleCallEntry "
            "ModuleCallSignature ShapesCollection default_decompositions draft_export unflatten"
        ),
        "torch.export.dynamic_shapes": "AdditionalInputs refine_dynamic_shapes_from_suggested_fixes",
        "torch.export.exported_program": "ModuleCallEntry ModuleCallSignature default_decompositions",
        "torch.export.graph_signature": "CustomObjArgument ExportBackwardSignature SymBoolArgument SymFloatArgument",
        "torch.export.unflatten": "FlatArgsAdapter InterpreterModule InterpreterModuleDispatcher unflatten",
        "torch.export.decomp_utils": "CustomDecompTable",
        "torch.export.passes": "move_to_device_pass",
    },
    "nodes of a graph have the dict meta, and stack_trace": {
        "torch.fx.traceback": (
            "NodeSource NodeSourceAction annotate annotate_fn format_stack get_current_meta get_current_replay_node "
            "get_graph_provenance_json has_preserved_node_meta preserve_node_meta reset_grad_fn_seq_nr "
            "set_current_meta set_current_replay_node set_grad_fn_seq_nr set_stack_trace"
        ),
        "torch.fx.passes.split_module": "Partition split_module split_module_simple",
    },
    "move each part with tensor.to(device)": {
        "torch.cuda.comm": "broadcast broadcast_coalesced gather reduce_add reduce_add_coalesced scatter",
    },
    "multiply with a mask, or with sparse tensors": {
        "torch.sparse": (
            "SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT SparseSemiStructuredTensorCUTLASS "
            "as_sparse_gradcheck spsolve to_sparse_semi_structured"
        ),
    },
    "pad sequences with torch.nn.utils.rnn.pad_sequence, and mask what was padded": {
        "torch.nested": (
            "as_nested_tensor masked_select narrow nested_tensor nested_tensor_from_jagged to_padded_tensor"
        ),
    },
    "save state_dict() with torch.save, and the source of the model apart from it": {
        "torch.package": (
            "Directory EmptyMatchError GlobGroup Importer ObjMismatchError ObjNotFoundError OrderedImporter "
            "PackageExporter PackageImporter PackagingError is_from_package"
        ),
    },
    "write the op in Python, with torch.library or tl.op": {
        "torch.utils.cpp_extension": (
            "BuildExtension CUDAExtension CppExtension SyclExtension check_compiler_is_gcc "
            "check_compiler_ok_for_platform get_compiler_abi_compatibility_and_version get_cxx_compiler "
            "get_default_build_root include_paths is_ninja_available library_paths load load_inline "
            "remove_extension_h_precompiler_headers verify_ninja_availability"
        ),
    },
    "weights are quantized with tallow.nn.quantization": {
        "torch": (
            "quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic quantized_batch_norm "
            "quantized_max_pool1d quantized_max_pool2d"
        ),
    },
    "export a model with tallow.onnx": {
        "torch.onnx.errors": "OnnxExporterError OnnxExporterWarning SymbolicValueError UnsupportedOperatorError",
        "torch.onnx.ops": "aten_decompositions attention rotary_embedding symbolic symbolic_multi_out",
        "torch.onnx.verification": "VerificationInfo verify_onnx_program",
        "torch.utils.mobile_optimizer": "MobileOptimizerType generate_mobile_module_lints optimize_for_mobile",
    },
    "kernels choose their plans themselves": {
        "torch.cuda.tunable": (
            "enable get_filename get_max_tuning_duration get_max_tuning_iterations get_results "
            "get_rotating_buffer_size get_validators is_enabled mgpu_tune_gemm_in_file read_file "
            "record_untuned_enable record_untuned_is_enabled set_filename set_max_tuning_duration "
            "set_max_tuning_iterations set_numerical_check_tolerances set_rotating_buffer_size tune_gemm_in_file "
            "tuning_enable tuning_is_enabled"
        ),
    },
    "call cupy.cuda.nvtx, or torch.profiler": {
        "torch.autograd.profiler": "EnforceUnique KinetoStepTracker MemRecordsAcc load_nvprof",
        "torch.cuda.nvtx": "mark range range_end range_pop range_push range_start",
        "torch.cuda.profiler": "profile start stop",
        "torch.profiler.itt": "is_available mark range range_pop range_push",
        "torch.monitor": (
            "Aggregation Event EventHandlerHandle Stat TensorboardEventHandler data_value_t log_event "
            "register_event_handler unregister_event_handler"
        ),
    },
    "read files with torch.load, and move what they hold to the GPU": {
        "torch.cuda.gds": "GdsFile gds_deregister_buffer gds_register_buffer",
    },
    "python -m tallow.distributed.run -n 4 train.py starts processes; a failure ends the job": {
        "torch.distributed.elastic.agent.server": (
            "ElasticAgent RunResult SimpleElasticAgent Worker WorkerGroup WorkerSpec WorkerState"
        ),
        "torch.distributed.elastic.agent": "",
        "torch.distributed.elastic.multiprocessing": (
            "DefaultLogsSpecs LogsDest LogsSpecs MultiprocessContext PContext ProcessFailure RunProcsResult "
            "SignalException SubprocessContext start_processes to_map"
        ),
        "torch.distributed.elastic.events": (
            "Event EventSource NodeState RdzvEvent construct_and_record_rdzv_event record"
        ),
        "torch.distributed.elastic.metrics": (
            "ConsoleMetricHandler MetricData MetricHandler MetricStream MetricsConfig NullMetricHandler configure "
            "getStream get_elapsed_time_ms prof profile publish_metric put_metric"
        ),
        "torch.distributed.elastic.rendezvous": (
            "RendezvousClosedError RendezvousConnectionError RendezvousError RendezvousGracefulExitError "
            "RendezvousHandler RendezvousHandlerCreator RendezvousHandlerRegistry RendezvousInfo "
            "RendezvousParameters RendezvousStateError RendezvousStoreInfo RendezvousTimeoutError "
            "rendezvous_handler_registry"
        ),
        "torch.distributed.elastic.timer": (
            "FileTimerClient FileTimerRequest FileTimerServer LocalTimerClient LocalTimerServer TimerClient "
            "TimerRequest TimerServer configure expires"
        ),
    },
    "use DistributedDataParallel, or the layers of tallow.nn.parallel": {
        "torch.distributed._composable": "checkpoint replicate fully_shard",
        "torch.distributed._composable.fsdp": (
            "FSDPModule CPUOffloadPolicy MixedPrecisionPolicy OffloadPolicy fully_shard "
            "register_fsdp_forward_method UnshardHandle"
        ),
        "torch.distributed._composable.fsdp.fully_shard": "FSDPModule fully_shard",
        "torch.distributed._tensor.api": "DTensor",
        "torch.distributed._tensor.experimental": "implicit_replication",
        "torch.distributed.algorithms.ddp_comm_hooks": "DDPCommHookType register_ddp_comm_hook",
        "torch.distributed.algorithms.ddp_comm_hooks.default_hooks": (
            "allreduce_hook fp16_compress_hook bf16_compress_hook fp16_compress_wrapper bf16_compress_wrapper"
        ),
        "torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook": "PostLocalSGDState post_localSGD_hook",
        "torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook": (
            "PowerSGDState powerSGD_hook batched_powerSGD_hook"
        ),
        "torch.distributed.algorithms.model_averaging": "",
        "torch.distributed.algorithms.model_averaging.averagers": "ModelAverager PeriodicModelAverager EMAAverager",
        "torch.distributed.autograd": "backward context get_gradients",
        "torch.distributed.fsdp._fully_shard": (
            "FSDPModule CPUOffloadPolicy MixedPrecisionPolicy OffloadPolicy fully_shard"
        ),
        "torch.distributed.pipelining": (
            "PipelineStage Schedule1F1B ScheduleDualPipeV ScheduleGPipe ScheduleInterleaved1F1B "
            "ScheduleInterleavedZeroBubble ScheduleLoopedBFS ScheduleZBVZeroBubble SplitPoint build_stage pipe_split "
            "pipeline"
        ),
        "torch.distributed.tensor._utils": (
            "compute_local_shape_and_global_offset compute_global_tensor_info compute_local_shape"
        ),
        "torch.distributed.tensor.experimental": "context_parallel implicit_replication local_map register_sharding",
        "torch.distributed.tensor.experimental._attention": "set_rotate_method",
        "torch.distributed.utils": "_sync_module_states _verify_param_shape_across_processes",
    },
    "call the collectives of torch.distributed, which write into a tensor": {
        "torch.distributed._functional_collectives": (
            "AsyncCollectiveTensor all_gather_tensor all_gather_tensor_autograd all_reduce all_to_all_single "
            "all_to_all_single_autograd broadcast permute_tensor reduce_scatter_tensor "
            "reduce_scatter_tensor_autograd wait_tensor"
        ),
    },
    "give each process as many batches": {
        "torch.distributed.algorithms.join": "Join Joinable JoinHook",
    },
    "save and load state_dict() of each process with torch.save and torch.load": {
        "torch.distributed.checkpoint": (
            "FileSystemReader FileSystemWriter StorageReader StorageWriter LoadPlanner SavePlanner "
            "DefaultLoadPlanner DefaultSavePlanner Metadata CheckpointException async_save load "
            "load_state_dict save save_state_dict BytesStorageMetadata ChunkStorageMetadata HuggingFaceStorageReader "
            "HuggingFaceStorageWriter LoadPlan QuantizedHuggingFaceStorageReader ReadItem SavePlan "
            "TensorStorageMetadata WriteItem load_sharded_optimizer_state_dict"
        ),
        "torch.distributed.checkpoint._consolidate_hf_safetensors": "consolidate_safetensors_files",
        "torch.distributed.checkpoint.default_planner": (
            "DefaultLoadPlanner DefaultSavePlanner _EmptyStateDictLoadPlanner"
        ),
        "torch.distributed.checkpoint.filesystem": "FileSystemReader FileSystemWriter",
        "torch.distributed.checkpoint.format_utils": (
            "_EmptyStateDictLoadPlanner _load_state_dict dcp_to_torch_save torch_save_to_dcp"
        ),
        "torch.distributed.checkpoint.hf_storage": "HuggingFaceStorageReader HuggingFaceStorageWriter",
        "torch.distributed.checkpoint.metadata": "Metadata TensorStorageMetadata BytesStorageMetadata STATE_DICT_TYPE",
        "torch.distributed.checkpoint.optimizer": "load_sharded_optimizer_state_dict",
        "torch.distributed.checkpoint.planner": "LoadPlanner SavePlanner LoadPlan SavePlan",
        "torch.distributed.checkpoint.state_dict": (
            "StateDictOptions get_model_state_dict get_optimizer_state_dict get_state_dict "
            "set_model_state_dict set_optimizer_state_dict set_state_dict _init_optim_state DictValueType FQNS_T "
            "ListDictValueType OptimizerStateType PrimitiveType ValueType"
        ),
        "torch.distributed.checkpoint.state_dict_loader": "load load_state_dict _load_state_dict",
        "torch.distributed.checkpoint.state_dict_saver": "save save_state_dict async_save",
        "torch.distributed.checkpoint.stateful": "Stateful",
    },
    "use torch.amp.GradScaler": {
        "torch.distributed.fsdp.sharded_grad_scaler": "ShardedGradScaler",
    },
    "python -m tallow.distributed.run -n 4 train.py starts processes": {
        "torch.distributed.launcher": "LaunchConfig elastic_launch launch_agent",
        "torch.distributed.launcher.api": "LaunchConfig elastic_launch",
        "torch.distributed.run": "get_args_parser main run config_from_args",
    },
    "call the collectives of torch.distributed": {
        "torch.distributed.nn": (
            "RemoteModule all_gather all_reduce all_to_all broadcast gather reduce reduce_scatter scatter"
        ),
        "torch.distributed.nn.functional": (
            "all_gather all_reduce all_to_all all_to_all_single broadcast gather reduce reduce_scatter scatter"
        ),
    },
    "use DistributedDataParallel with an optimizer of torch.optim": {
        "torch.distributed.optim": "DistributedOptimizer PostLocalSGDOptimizer as_functional_optim",
    },
    "send tensors by torch.distributed.send and recv": {
        "torch.distributed.rpc": (
            "BackendType PyRRef RRef RemoteModule RpcBackendOptions TensorPipeRpcBackendOptions WorkerInfo "
            "get_worker_info init_rpc remote rpc_async rpc_sync shutdown"
        ),
        "torch.distributed.rpc.api": (
            "_all_gather _require_initialized _wait_all get_worker_info remote rpc_async rpc_sync shutdown"
        ),
        "torch.distributed.rpc.functions": "async_execution",
    },
    "use ColumnParallelLinear and RowParallelLinear of tallow.nn.parallel": {
        "torch.distributed.tensor.parallel": (
            "ParallelStyle ColwiseParallel RowwiseParallel SequenceParallel PrepareModuleInput "
            "PrepareModuleOutput parallelize_module loss_parallel"
        ),
    },
}
# module -> its names, and what to use in their place
ABSENT = {module: (names.split(), hint) for hint, modules in _BY_HINT.items() for module, names in modules.items()}
