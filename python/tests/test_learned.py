"""Learned policies decide in Rust as where they were made."""

import json

import guide
import numpy
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import quipu

LENGTH = len(quipu.observation_names())
PLACES = 4
ROWS = 10_000


def observations(seed):
    """Random numbers, some of them zero as those of paths that are not there, and places, at least one allowed."""
    random = numpy.random.default_rng(seed)
    numbers = random.exponential(1.0, (ROWS, LENGTH)).clip(0, 100).astype(numpy.float32)
    numbers[random.random((ROWS, LENGTH)) < 0.3] = 0.0
    allowed = random.random((ROWS, PLACES)) < 0.6
    allowed[numpy.arange(ROWS), random.integers(0, PLACES, ROWS)] = True
    return numbers, allowed


def save_mlp(file, seed=1, output=PLACES):
    random = numpy.random.default_rng(seed)
    sizes = [LENGTH, 32, 32, output]
    nodes, weights, last = [], [], "numbers"
    for layer, (inputs, outputs) in enumerate(zip(sizes, sizes[1:], strict=False)):
        scale = (2.0 / inputs) ** 0.5
        weights += [
            numpy_helper.from_array(
                random.normal(0.0, scale, (outputs, inputs)).astype(numpy.float32), f"w{layer}"
            ),
            numpy_helper.from_array(random.normal(0.0, 0.1, outputs).astype(numpy.float32), f"b{layer}"),
        ]
        name = "scores" if layer == 2 else f"sum{layer}"
        nodes.append(helper.make_node("Gemm", [last, f"w{layer}", f"b{layer}"], [name], transB=1))
        last = name
        if layer < 2:
            nodes.append(helper.make_node("Tanh" if layer else "Relu", [name], [f"out{layer}"]))
            last = f"out{layer}"
    graph = helper.make_graph(
        nodes,
        "policy",
        [helper.make_tensor_value_info("numbers", TensorProto.FLOAT, ["batch", LENGTH])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", output])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, file)


def save_linear(file, seed=2):
    random = numpy.random.default_rng(seed)
    weights = random.normal(0.0, 1.0, (PLACES, LENGTH)).astype(numpy.float32)
    bias = random.normal(0.0, 1.0, PLACES).astype(numpy.float32)
    quipu.save_linear(file, weights, bias)
    return weights, bias


def test_a_linear_policy_decides_as_numpy_does(tmp_path):
    file = tmp_path / "policy.json"
    weights, bias = save_linear(file)
    numbers, allowed = observations(3)
    scores = numpy.broadcast_to(bias.astype(numpy.float64), (ROWS, PLACES)).copy()
    for index in range(LENGTH):
        scores += weights[:, index].astype(numpy.float64) * numbers[:, index, None].astype(numpy.float64)
    expected = numpy.where(allowed, scores, -numpy.inf).argmax(axis=1)
    policy = quipu.LearnedPolicy(file)
    assert policy.decide(numbers, allowed) == expected.tolist()
    assert len(set(expected.tolist())) == PLACES
    assert policy.decide(numbers[7], allowed[7]) == expected[7]


def test_a_network_decides_as_onnxruntime_does(tmp_path):
    file = tmp_path / "policy.onnx"
    save_mlp(file)
    numbers, allowed = observations(5)
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    (scores,) = session.run(None, {"numbers": numbers})
    masked = numpy.where(allowed, scores, -numpy.inf)
    decided = numpy.array(quipu.LearnedPolicy(file).decide(numbers, allowed))
    # Layers are summed up in another order, which could only matter where two scores are almost equal. None of these are.
    best = numpy.sort(masked, axis=1)
    assert (best[:, -1] - best[:, -2]).min() > 1e-4
    assert numpy.array_equal(decided, masked.argmax(axis=1))
    assert len(set(decided.tolist())) == PLACES


def test_learned_policies_are_compared_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_linear("policy.json")
    save_mlp("policy.onnx")
    results = quipu.compare(
        page="dojo-demo",
        network="wifi+lte",
        stream="fifo",
        runs=1,
        baselines=False,
        path=["minrtt", "linear:file=policy.json", "onnx:file=policy.onnx"],
    )
    assert len(results.runs) == 3
    assert "linear:file=policy.json" in results.scenario


def test_a_sweep_makes_the_runs_of_a_changed_file_again(tmp_path):
    file = tmp_path / "policy.json"
    scenario = {
        "pages": ["dojo-demo"],
        "networks": ["wifi+lte"],
        "runs": 1,
        "sweep": {"transport.initial_window": [10]},
    }
    save_linear(file, seed=2)

    def made():
        quipu.sweep(
            scenario, out=tmp_path / "sweep", path=[f"linear:file={file}"], progress=lambda *_: None
        )
        return {path.name for path in (tmp_path / "sweep").rglob("*") if path.is_file()}, {
            path: path.read_bytes() for path in (tmp_path / "sweep").rglob("*") if path.is_file()
        }

    first = made()
    assert made() == first
    save_linear(file, seed=5)
    assert made() != first


def test_what_is_no_policy_says_what_was_expected(tmp_path):
    with pytest.raises(quipu.ScenarioError, match="linear.*; expected linear:file=FILE"):
        quipu.compare(page="dojo-demo", path="linear", runs=1)
    save_mlp(tmp_path / "three.onnx", output=3)
    with pytest.raises(quipu.ScenarioError, match=r"output .* expected float32 of shape \[1, 4\]"):
        quipu.LearnedPolicy(tmp_path / "three.onnx")
    save_linear(tmp_path / "policy.json")
    policy = json.loads((tmp_path / "policy.json").read_text())
    policy["names"][1] = "open"
    (tmp_path / "other.json").write_text(json.dumps(policy))
    with pytest.raises(quipu.ScenarioError, match=r"names\[1\]: `open`: expected `path0.is_open`"):
        quipu.LearnedPolicy(tmp_path / "other.json")
    with pytest.raises(TypeError, match="expected arrays of float32 and bool"):
        quipu.LearnedPolicy(tmp_path / "policy.json").decide(numpy.zeros(LENGTH), numpy.ones(PLACES, bool))
    with pytest.raises(quipu.ScenarioError, match="weights: 1 items: expected 4"):
        quipu.save_linear(tmp_path / "short.json", [[0.0] * LENGTH], [0.0] * PLACES)
    assert not (tmp_path / "short.json").exists()


def test_the_code_of_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = guide.run("learned.md")
    numbers = numpy.zeros(LENGTH, numpy.float32)
    numbers[2] = 1.5
    assert names["scores"].shape == (PLACES,)
    assert quipu.LearnedPolicy("policy.json").decide(numbers, numpy.ones(PLACES, bool)) == 1
