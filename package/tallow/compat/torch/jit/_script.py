"""torch.jit._script: classes of scripted objects."""

from tallow.fx.compile.scripted import ScriptFunction, ScriptModule
from tallow.jit import script

RecursiveScriptModule = ScriptModule
__all__ = ["RecursiveScriptModule", "ScriptFunction", "ScriptModule", "script"]
