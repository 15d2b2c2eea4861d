"""Run by Python at its start where `iptf` put this folder on PYTHONPATH.

Enables `ipfs://` and `iptf://` once the program imports TensorFlow, and gives way to the
sitecustomize that would have run without it. Imports next to nothing: every Python program that
is started below `iptf` pays for it.
"""

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType


class _EnablingLoader(Loader):
    """Loads TensorFlow as its own loader does, and registers the plugin in it."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        try:
            from trainyard.iptf import enable

            enable()
        except Exception as error:  # the program may do well without it
            print(f"iptf: ipfs:// is not available here: {error}", file=sys.stderr)


class _Finder(MetaPathFinder):
    """Finds TensorFlow where it is found anyhow."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "tensorflow":
            return None
        # Each time: a program may ask whether it is there before it imports it.
        for finder in [other for other in sys.meta_path if other is not self]:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _EnablingLoader(spec.loader)
                return spec
        return None


def _run_the_other() -> None:
    """The sitecustomize that this one hides."""
    here = Path(__file__).resolve().parent
    others = [folder for folder in sys.path if Path(folder or ".").resolve() != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


sys.meta_path.insert(0, _Finder())
_run_the_other()
