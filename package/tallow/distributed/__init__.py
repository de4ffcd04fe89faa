"""Distributed computation in several processes, on one or several machines, as in torch.distributed.

CPU arrays are sent by MPI (the extra `mpi`: mpi4py and the library MPICH), GPU arrays by NCCL, through CuPy. Start the
processes with `mpiexec -n 4 python train.py`; or with `python -m tallow.distributed.run -n 4 train.py`, which finds
mpiexec itself, and also ends the job if a process fails before it joins the others.

Example:
    import tallow as tl
    import tallow.distributed as dist

    dist.init_process_group()
    x = tl.full((3,), float(dist.get_rank()))
    dist.all_reduce(x)  # every process gets the same sum
"""

from __future__ import annotations

from tallow.distributed.collectives import (
    P2POp,
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    batch_isend_irecv,
    broadcast,
    gather,
    irecv,
    isend,
    recv,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
    send,
)
from tallow.distributed.groups import (
    GroupMember,
    ProcessGroup,
    destroy_process_group,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    new_group,
)
from tallow.distributed.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from tallow.distributed.reduce_op import ReduceOp
from tallow.distributed.subgroups import DeviceMesh, init_device_mesh, new_subgroups, new_subgroups_by_enumeration
from tallow.distributed.work import Work
from tallow.errors import DistributedError as DistError
from tallow.lazy_names import names_of

__all__ = [
    "DeviceMesh",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "GroupMember",
    "HashStore",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "QueueEmptyError",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "init_device_mesh",
    "init_process_group",
    "irecv",
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "isend",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
]

# Few programs use a store, and those of several processes need sockets and locks of files.
_STORES = {
    **dict.fromkeys(("QueueEmptyError", "DistStoreError", "HashStore", "PrefixStore", "Store"), "stores"),
    **dict.fromkeys(("DistNetworkError", "TCPStore"), "tcp_store"),
    "FileStore": "file_store",
}
__getattr__, __dir__ = names_of(__name__, {name: f"{__name__}.{home}:{name}" for name, home in _STORES.items()})
