"""LoRA: train small matrices next to frozen layers, save them as an adapter, and use or merge adapters.

    model = AutoModel.from_pretrained("model-Q4_K_M.gguf")  # quantised layers stay quantised
    model = get_peft_model(model, LoraConfig(r=8, lora_alpha=16))
    ...                                                     # train model.parameters() that require gradients
    model.save_pretrained("adapter")

Names, files and results are those of the library peft, in both directions.

Source:  Hu et al. 2021, arXiv:2106.09685; Dettmers et al. 2023, arXiv:2305.14314; names as in peft
"""

from tallow.lazy_names import names_of
from tallow.peft.config import LoraConfig, PeftConfig, PeftType, TaskType
from tallow.peft.layers import LoraLayer, ModulesToSaveWrapper
from tallow.peft.lora_model import LoraModel
from tallow.peft.peft_model import PeftModel, get_peft_model, prepare_model_for_kbit_training
from tallow.peft.state import get_peft_model_state_dict, set_peft_model_state_dict

__all__ = [
    "LoraConfig",
    "LoraLayer",
    "LoraModel",
    "ModulesToSaveWrapper",
    "PeftConfig",
    "PeftModel",
    "PeftType",
    "TaskType",
    "get_peft_model",
    "get_peft_model_state_dict",
    "prepare_model_for_kbit_training",
    "set_peft_model_state_dict",
]

_TASKS: tuple[str, ...] = ("CausalLM", "FeatureExtraction", "QuestionAnswering", "Seq2SeqLM")
_TASKS += ("SequenceClassification", "TokenClassification")
_LAZY = {f"AutoPeftModelFor{task}": f"tallow.transformers.auto_adapters:AutoPeftModelFor{task}" for task in _TASKS}

__getattr__, __dir__ = names_of(__name__, _LAZY)
