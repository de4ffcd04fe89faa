"""torch.utils.model_zoo: the former names of functions of `torch.hub`."""

from tallow.compat.torch.hub import load_state_dict_from_url
from tallow.lazy_names import names_of

load_url = load_state_dict_from_url

__all__ = ["load_state_dict_from_url", "load_url"]

__getattr__, __dir__ = names_of(
    __name__,
    lazy={
        "tqdm": "tallow.compat.torch.hub:tqdm",
        "_download_url_to_file": "tallow.compat.torch.hub:download_url_to_file",
    },
)
