"""HTTP over Multipath QUIC, with every scheduling decision open to choice.

    import quipu

    results = quipu.compare(page="dojo-demo", network="wifi+lte", path=["minrtt", "ecf"], runs=10)
    print(results)                      # the tables of the command
    polars.DataFrame(results.runs)      # any table, for anything that reads Arrow
    results.report("report.html")

A scenario is what the command's options and files say: keyword arguments here, a dictionary, or a TOML file. What is
wrong in one is a `ScenarioError` that names the field, its value and what was expected. Schedulers are classes:
`PathPolicy`, `StreamPolicy`, `JointPolicy`, `AckPolicy`, `CongestionController`. `quipu.envs` has environments of Gymnasium.
"""

from quipu._catalogue import browsers, check_policy, networks, pages, policies, policy, traces
from quipu._experiments import compare, experiments, load, reproduce, run, sweep
from quipu._networks import random_networks
from quipu._live import Fetched, Server, fetch, serve
from quipu._learned import LearnedPolicy, observation_names, save_linear
from quipu._policy import (
    AckPolicy,
    CongestionController,
    JointPolicy,
    Param,
    PathPolicy,
    StreamPolicy,
    register,
)
from quipu._quipu import (
    CongestionEvent,
    ExpiredViewError,
    FromBack,
    Later,
    Packet,
    Parcel,
    PathView,
    Random,
    RunError,
    ScenarioError,
    Send,
    StreamView,
    Table,
    View,
    Wait,
)
from quipu._results import Figure, Results, Verdicts, open_results
from quipu._scenario import Network, Path

__all__ = [
    "AckPolicy",
    "CongestionController",
    "CongestionEvent",
    "ExpiredViewError",
    "Fetched",
    "Figure",
    "FromBack",
    "JointPolicy",
    "Later",
    "LearnedPolicy",
    "Network",
    "Packet",
    "Param",
    "Parcel",
    "Path",
    "PathPolicy",
    "PathView",
    "Random",
    "Results",
    "RunError",
    "ScenarioError",
    "Send",
    "Server",
    "StreamPolicy",
    "StreamView",
    "Table",
    "Verdicts",
    "View",
    "Wait",
    "browsers",
    "check_policy",
    "compare",
    "experiments",
    "fetch",
    "load",
    "networks",
    "observation_names",
    "open_results",
    "pages",
    "policies",
    "policy",
    "random_networks",
    "register",
    "reproduce",
    "run",
    "serve",
    "save_linear",
    "sweep",
    "traces",
]
