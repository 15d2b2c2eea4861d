"""Points the tools of this environment at the compiler and the chains that the set-up installed.

Python runs this at every start of the environment's interpreter (through a `.pth` file), because
py-solc-x reads its variable on import and brownie looks for Ganache on the path. So
`.venv/bin/brownie` works as it is, and no shell has to be prepared.
"""

import os
import sys

os.environ.setdefault("SOLCX_BINARY_PATH", os.path.join(sys.prefix, "solcx"))

_node_tools = os.path.join(os.path.dirname(sys.prefix), "node_modules", ".bin")
if _node_tools not in os.environ.get("PATH", "").split(os.pathsep):
    os.environ["PATH"] = os.pathsep.join([_node_tools, os.environ.get("PATH", os.defpath)])
