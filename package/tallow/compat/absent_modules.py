"""Names of PyTorch that mean nothing on tallow, by module: of sharded models, remote calls, launchers."""

from __future__ import annotations

# What to use in their place -> module -> its names.
_BY_HINT: dict[str, dict[str, str]] = {
    "use DistributedDataParallel, or the layers of tallow.nn.parallel": {
        "torch.distributed._composable": "checkpoint replicate fully_shard",
        "torch.distributed._composable.fsdp": (
            "FSDPModule CPUOffloadPolicy MixedPrecisionPolicy OffloadPolicy fully_shard "
            "register_fsdp_forward_method UnshardHandle"
        ),
        "torch.distributed._composable.fsdp.fully_shard": "FSDPModule fully_shard",
        "torch.distributed._tensor.api": "DTensor",
        "torch.distributed._tensor.device_mesh": "DeviceMesh init_device_mesh",
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
        "torch.distributed.fsdp.wrap": (
            "ModuleWrapPolicy CustomPolicy _or_policy _module_wrap_policy always_wrap_policy enable_wrap "
            "lambda_auto_wrap_policy size_based_auto_wrap_policy transformer_auto_wrap_policy wrap"
        ),
        "torch.distributed.pipelining": "PipelineStage Schedule1F1B ScheduleGPipe SplitPoint pipe_split pipeline",
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
            "load_state_dict save save_state_dict"
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
            "set_model_state_dict set_optimizer_state_dict set_state_dict _init_optim_state"
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
        "torch.distributed.optim": "DistributedOptimizer PostLocalSGDOptimizer ZeroRedundancyOptimizer",
        "torch.distributed.optim.zero_redundancy_optimizer": "ZeroRedundancyOptimizer",
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
