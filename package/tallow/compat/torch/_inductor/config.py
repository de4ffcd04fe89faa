"""torch._inductor.config: settings of PyTorch's code generator. They are stored, and have no effect."""

from types import SimpleNamespace

conv_1x1_as_mm = coordinate_descent_tuning = epilogue_fusion = force_fuse_int_mm_with_mul = False
coordinate_descent_check_all_directions = max_autotune = max_autotune_gemm = use_mixed_mm = False
fx_graph_cache = freezing = False
cpp, triton = SimpleNamespace(), SimpleNamespace(cudagraphs=False, unique_kernel_names=False)
