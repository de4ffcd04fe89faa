"""`pipeline`: load a model and what prepares its inputs, for a task."""

from __future__ import annotations

from os import PathLike, fspath
from typing import Any

from tallow.errors import ArgumentError, CheckpointError, UnsupportedError
from tallow.hub import local_settings
from tallow.lazy_names import import_name
from tallow.optimum.folders import any_config, onnx_file
from tallow.transformers.downloads import find_folder
from tallow.transformers.pipelines.tasks import TASKS, Task, task_named, task_of
from tallow.transformers.without_effect import Neutral, effective

NEUTRAL: Neutral = {"use_fast": (None, True), "framework": (None, "pt")}
PROCESSORS = {
    "tokenizer": "AutoTokenizer",
    "feature_extractor": "AutoFeatureExtractor",
    "image_processor": "AutoImageProcessor",
}


def pipeline(
    task: str | None = None,
    model: Any = None,
    config: Any = None,
    tokenizer: Any = None,
    feature_extractor: Any = None,
    image_processor: Any = None,
    video_processor: Any = None,
    processor: Any = None,
    revision: str | None = None,
    use_fast: bool = True,
    token: str | bool | None = None,
    device: Any = None,
    device_map: Any = None,
    dtype: Any = "auto",
    trust_remote_code: bool | None = None,
    model_kwargs: dict[str, Any] | None = None,
    pipeline_class: Any = None,
    via: str | None = None,
    **kwargs: Any,
) -> Any:
    """Return a pipeline: a function from texts, pictures or sounds to results.

    Args:
        task: the name of the task, as `get_supported_tasks` lists them; None means the task of the model.
        model: a model, the name of one on the Hub, or a folder; None means a model of the package, if one fits.
        config: a config, or where it lies; None means the model's.
        tokenizer, feature_extractor, image_processor, processor: what prepares inputs, or where it lies; None means
            where the model lies.
        video_processor: no task here takes videos.
        revision, token: of the repository on the Hub.
        use_fast: has no effect: all tokenizers here are fast.
        device: None or a number means a GPU if there is one; -1 means the CPU.
        device_map, dtype, model_kwargs: arguments of the model's `from_pretrained`.
        trust_remote_code: as in `from_pretrained`: code of repositories never runs here.
        pipeline_class: a class of one's own, instead of the task's.
        via: "transformers" returns the pipeline of the installed package `transformers`, with tallow in the place of
            PyTorch, for a model or a task that tallow has not; all other arguments are passed on.
        kwargs: arguments of the pipeline; see the class of the task in `tallow.transformers.pipelines`.

    Raises:  ArgumentError without a task and a model, and for a task that no model of the package fits;
             InvalidKeyError for an unknown task; UnsupportedError for a task that only transformers has;
             CheckpointError for a model without a task of its own; as `from_pretrained`

    Example:
        >>> from tallow.transformers import pipeline
        >>> write = pipeline("text-generation")  # a model of the package
        >>> write("Once upon a", max_new_tokens=1, do_sample=False)
        [{'generated_text': 'Once upon a time'}]
    """
    if via is not None:
        given = {name: value for name, value in locals().items() if name not in ("via", "kwargs", "use_fast", "dtype")}
        given |= {} if dtype == "auto" else {"dtype": dtype}
        return import_name("tallow.compat.via:load_pipeline")(via, **given, **kwargs)
    check(task, model, tokenizer, feature_extractor, video_processor)
    kwargs = effective("pipeline", {**kwargs, "use_fast": use_fast}, NEUTRAL)
    options = dict(model_kwargs or {})
    torch_dtype = kwargs.pop("torch_dtype", None)
    options.setdefault("dtype", options.pop("torch_dtype", None) or (torch_dtype if dtype == "auto" else dtype))
    if trust_remote_code is not None:
        options["trust_remote_code"] = trust_remote_code
    hub = {name: value for name, value in {"revision": revision, "token": token}.items() if value is not None}
    hub |= {name: kwargs.pop(name) for name in ("local_files_only", "cache_dir") if name in kwargs}
    source = model if isinstance(model, str) else fspath(model) if isinstance(model, PathLike) else None
    if source is not None and config is None:
        config = config_of(source, hub)
    name = task_named(task) if task is not None else guessed(config, source)
    parts = {
        "tokenizer": tokenizer,
        "feature_extractor": feature_extractor,
        "image_processor": image_processor,
    }
    if model is None:
        model, own = import_name("tallow.transformers.pipelines.built_in:load")(name, TASKS[name])
        parts |= own
    elif source is not None:
        if device_map is not None:
            options["device_map"] = device_map
        model = loaded_model(TASKS[name], source, config, {**hub, **options})
    kind = pipeline_class or import_name(f"tallow.transformers.pipelines:{TASKS[name].pipeline}")
    needed = getattr(kind, "parts", ("tokenizer",))
    parts = {part: part_of(part, given, part in needed, processor, model, source, hub) for part, given in parts.items()}
    if processor is not None:
        parts["processor"] = loaded("AutoProcessor", processor, hub) if isinstance(processor, str) else processor
    given = {part: value for part, value in parts.items() if value is not None}
    return kind(model=model, task=task or name, device=device, **given, **kwargs)


def check(task: Any, model: Any, tokenizer: Any, feature_extractor: Any, video_processor: Any) -> None:
    """Raise ArgumentError for arguments that say too little."""
    if task is None and model is None:
        raise ArgumentError(
            "pipeline() got no task and no model", hint='pass a task, as in pipeline("text-generation")'
        )
    if model is None and (tokenizer is not None or feature_extractor is not None):
        raise ArgumentError("a tokenizer or feature extractor without its model", hint="pass the model too")
    if video_processor is not None:
        raise ArgumentError("no task of tallow takes a video_processor", hint="leave it out")
    if task is not None and not isinstance(task, str):
        raise ArgumentError(f"a task is a name, not {task!r:.80}", hint='as in pipeline("text-generation", model=...)')


def config_of(source: str, hub: dict[str, Any]) -> Any:
    """Return the config of a model; of an architecture that tallow has no file for if its model is in an ONNX file.

    Raises:  as `AutoConfig.from_pretrained`
    """
    if onnx_file(source) is not None:
        return any_config(source)
    try:
        return loaded("AutoConfig", source, hub)
    except CheckpointError:
        config = any_config(find_folder(source, hub, local_settings)[0])
        tasks = [TASKS[name] for each in config.architectures or () if (name := task_of(each)) is not None]
        if not any(task.onnx for task in tasks):
            raise
        return config


def guessed(config: Any, source: str | None) -> str:
    """Return the task of a model, by its architecture.  Raises: ArgumentError, CheckpointError"""
    architectures = getattr(config, "architectures", None) or []
    for architecture in architectures:
        if (name := task_of(architecture)) is not None:
            return name
    if source is None:
        raise ArgumentError("pipeline() got a model but no task", hint='pass a task, as in pipeline("text-generation")')
    raise CheckpointError(
        f"{source}: the architecture {', '.join(architectures) or 'is not named, which'} says no task",
        hint="pass a task",
    )


def loaded(auto: str, source: str, options: dict[str, Any]) -> Any:
    """Return what an Auto class loads.  Raises: as its `from_pretrained`"""
    return import_name(f"tallow.transformers:{auto}").from_pretrained(source, **options)


def onnx_classes() -> dict[str, Any]:
    """Return the classes of models in ONNX files, which are imported at their first use."""
    found: dict[str, Any] = import_name("tallow.optimum.onnxruntime:BY_AUTO")
    return found


def has_class(auto: str, config: Any) -> bool:
    """Return whether an Auto class has a class for a config."""
    try:
        import_name(f"tallow.transformers:{auto}").class_for(config)
    except CheckpointError:
        return False
    return True


def loaded_model(task: Task, source: str, config: Any, options: dict[str, Any]) -> Any:
    """Return the model of a task, by the first of its classes that can load it.  Raises: as `from_pretrained`"""
    *others, last = task.models
    if task.onnx and not any(has_class(auto, config) for auto in task.models):
        return onnx_classes()[last].from_pretrained(source, config=config, **options)
    if (file := onnx_file(source)) is not None:
        if last not in onnx_classes():
            raise UnsupportedError(
                f"{source} has a model in ONNX only, which {last} does not load", hint="load weights"
            )
        name = file.relative_to(source).as_posix()
        return onnx_classes()[last].from_pretrained(source, config=config, file_name=name, **options)
    for auto in others:
        if has_class(auto, config):
            return loaded(auto, source, {"config": config, **options})
    return loaded(last, source, {"config": config, **options})


def part_of(
    part: str, given: Any, needed: bool, processor: Any, model: Any, source: str | None, hub: dict[str, Any]
) -> Any:
    """Return what prepares the inputs: the given one, or that of the folder that the model came from.

    Raises:  ArgumentError for a model from no folder
    """
    if isinstance(given, tuple):  # a name, and options
        return loaded(PROCESSORS[part], given[0], {**hub, **given[1]})
    if isinstance(given, str | PathLike):
        return loaded(PROCESSORS[part], fspath(given), hub)
    if given is not None or not needed or processor is not None:
        return given
    place = source or getattr(model, "name_or_path", None) or getattr(model, "folder", None)
    if not place:
        raise ArgumentError(
            f"the model is from no folder, so its {part} is unknown", hint=f"pass {part}=..., or the model's name"
        )
    return loaded(PROCESSORS[part], fspath(place), hub)
