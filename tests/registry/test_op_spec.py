"""The arguments and connections of a use of an operator, under DALI's names."""

from __future__ import annotations

from dalify import backend, ops


def test_arguments_inputs_and_outputs() -> None:
    spec = ops.Resize(size=[2, 3]).spec
    assert isinstance(spec, backend.OpSpec)
    spec.AddArg("antialias", False).AddArgEmptyList("roi_start", None)
    assert spec.arguments["size"] == [2, 3]
    assert (spec.arguments["antialias"], spec.arguments["roi_start"]) == (False, [])
    spec.AddInput("images", "cpu", 3, layout="HWC").AddArgumentInput("resize_x", "widths").AddOutput("resized", "cpu")
    copied = spec.copy()
    spec.RenameInput(0, "photos")
    spec.RenameOutput(0, "small")
    assert (spec.NumInput(), spec.NumRegularInput(), spec.NumOutput()) == (2, 1, 1)
    assert [spec.InputName(number) for number in range(2)] == ["photos", "widths"]
    assert spec.InputDesc(0) == ("photos", "cpu", 3, None, "HWC")
    assert spec.OutputDesc(0) == ("small", "cpu", None, None, None)
    assert (spec.InputDevice(1), spec.OutputDevice(0), spec.OutputName(0)) == ("cpu", "cpu", "small")
    assert (copied.InputName(0), copied.OutputName(0)) == ("images", "resized")
    assert "photos" in str(spec)
    assert backend.GetSchema("Resize").CalculateOutputs(spec) == 1
