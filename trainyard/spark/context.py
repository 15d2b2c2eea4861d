"""Spark on this machine, and the market that it works for."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from trainyard.sdk.market import Market
from trainyard.spark.errors import NoSparkError

if TYPE_CHECKING:
    from pyspark import SparkContext

OLDEST_JAVA = 17
_INSTALL = (
    f"install Java {OLDEST_JAVA} or newer (Debian: apt-get install default-jre-headless), or "
    "set JAVA_HOME to where it is"
)
_VERSION = re.compile(r'version "(\d+)')
# Nobody but this machine is to reach what Spark listens on, unless somebody says otherwise.
_LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}


def init_nncontext(
    app_name: str = "trainyard", conf: Mapping[str, str] | None = None, *, master: str = "local[*]"
) -> "SparkContext":
    """The Spark that is there already, else one on this machine, or of the cluster at `master`.

    `conf` are settings of Spark's own. On this machine, executors run the Python of this process.
    """
    require_java()
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise NoSparkError(
            "PySpark is not installed: install it with pip install 'trainyard[spark]', or "
            "pip install '.[spark]' in a clone"
        ) from error
    is_local = master.startswith("local")
    if is_local:
        # The only way to say so that Spark heeds in every case.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app_name).master(master)
    for name, value in {**(_LOCAL if is_local else {}), **(conf or {})}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate().sparkContext


def require_java() -> int:
    """The version of the Java that Spark will run on; NoSparkError where there is none."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).is_file():
        where = f"JAVA_HOME is {home}, and no Java is there" if home else "there is no Java here"
        raise NoSparkError(f"{where}, on which Spark runs: {_INSTALL}")
    said = subprocess.run(
        [java, "-version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    found = _VERSION.search(said.stderr + said.stdout)
    # Before the ninth, versions were called 1.8 and the like.
    if found is None or int(found[1]) < OLDEST_JAVA:
        version = "cannot be asked for its version" if found is None else f"is version {found[1]}"
        raise NoSparkError(f"{java} {version}: {_INSTALL}")
    return int(found[1])


@contextmanager
def market_or_found(market: Market | None) -> Iterator[Market]:
    """The market given, or one that is found and closed afterwards."""
    if market is not None:
        yield market
        return
    from trainyard.face import connect

    with connect() as found:
        yield found
