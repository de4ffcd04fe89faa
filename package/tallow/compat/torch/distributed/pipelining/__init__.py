"""torch.distributed.pipelining: models that are divided by layers."""

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel, or the layers of tallow.nn.parallel"
PipelineStage = absent("torch.distributed.pipelining.PipelineStage", _HINT)
Schedule1F1B = absent("torch.distributed.pipelining.Schedule1F1B", _HINT)
ScheduleGPipe = absent("torch.distributed.pipelining.ScheduleGPipe", _HINT)
SplitPoint = absent("torch.distributed.pipelining.SplitPoint", _HINT)
pipe_split = absent("torch.distributed.pipelining.pipe_split", _HINT)
pipeline = absent("torch.distributed.pipelining.pipeline", _HINT)
