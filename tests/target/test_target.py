"""Targets: reading their forms, options, the current one."""

import pickle

import pytest

from mlc_lab.reading import DataError, MLCError
from mlc_lab.target import Target, detect_target, list_tags, register_tag
from mlc_lab.target.tags import TAGS


@pytest.mark.parametrize(
    "form",
    [
        "llvm -mcpu=skylake -num-cores=4 -mattr=+avx2,-avx512f",
        "llvm --mcpu=skylake --num-cores 4 --mattr=+avx2,-avx512f",
        "llvm -mcpu skylake -num-cores 4 -mattr +avx2,-avx512f",
        {"kind": "llvm", "mcpu": "skylake", "num-cores": 4, "mattr": ["+avx2", "-avx512f"]},
        {"kind": "llvm", "mcpu": "skylake", "num_cores": 4, "mattr": "+avx2,-avx512f"},
        '{"kind": "llvm", "mcpu": "skylake", "num-cores": 4, "mattr": ["+avx2", "-avx512f"]}',
    ],
)
def test_all_forms_mean_the_same(form):
    target = Target(form)
    assert target.kind.name == "llvm" and target.mcpu == "skylake" and target.num_cores == 4
    assert target.mattr == ["+avx2", "-avx512f"] and target.attrs["num-cores"] == 4
    assert target == Target("llvm -mcpu=skylake -num-cores=4 -mattr=+avx2,-avx512f")
    assert Target(str(target)) == Target(target.export()) == pickle.loads(pickle.dumps(target))
    assert Target(target) is target


def test_defaults_and_keys():
    assert Target("llvm").keys == ("cpu",) and Target("llvm").num_cores is None
    assert Target("cuda").max_num_threads == 1024 and Target("cuda").thread_warp_size == 32
    assert Target("cuda -arch=sm_80").arch == "sm_80"
    assert Target("nvidia/nvidia-a100").arch == "sm_80"
    assert Target("llvm -device=arm_cpu").keys == ("arm_cpu", "cpu")
    assert Target("llvm -mtriple=aarch64-linux-gnu").mtriple == "aarch64-linux-gnu"
    assert str(Target("llvm -num-cores=4")) == "llvm -keys=cpu -num-cores=4"


def test_host():
    target = Target("cuda", host="llvm -mcpu=skylake")
    assert target.host.mcpu == "skylake" and Target(target=target.export()).host == target.host
    assert Target(target, "llvm").host.mcpu == ""
    assert Target({"kind": "cuda", "host": "llvm"}).host.kind.name == "llvm"


def test_current_target():
    assert Target.current() is None
    with Target("llvm") as outer, Target("cuda") as inner:
        assert Target.current() is inner and outer.kind.name == "llvm"
    with pytest.raises(ValueError, match="no current target"):
        Target.current(allow_none=False)


@pytest.mark.parametrize(
    "form, text",
    [
        ("lvm", "unknown target kind 'lvm'; did you mean 'llvm'"),
        ("llvm -mcpuu=x", "no option 'mcpuu'; did you mean 'mcpu'"),
        ("llvm -num-cores=x", "is a whole number, not 'x'"),
        ("llvm skylake", "'skylake' is no option"),
        ("-mcpu=x", "starts with its kind"),
        ("", "the target is empty"),
    ],
)
def test_mistakes_are_explained(form, text):
    with pytest.raises(ValueError, match=text):
        Target(form)
    with pytest.raises(TypeError):
        Target(3)


def test_targets_cannot_be_changed():
    with pytest.raises(AttributeError):
        Target("llvm").kind = None
    with pytest.raises(AttributeError, match="no option 'nonsense'"):
        Target("llvm").nonsense


def test_this_machine():
    assert detect_target().mcpu and detect_target().num_cores >= 1


@pytest.mark.parametrize("text", [
    '{"kind": ' * 100_000, '{"kind": "llvm", "num-cores": 1e999}', '{"kind": NaN}', "llvm -mcpu='",
    '{"kind": "llvm", "keys": 5}', '{"kind": "llvm", "' + "x" * 100_000 + '": 1}', "{",
    "x" * 1_000_000, '{"kind": "llvm", "mattr": {"a": 1}}', '{"kind": "llvm", "host": 7}',
    '{"kind": {"a": 1}}', '{"kind": "llvm", "num-cores": [1]}',
    '{"kind": "llvm", "system-lib": []}',
])
def test_hostile_texts_are_refused_as_data_or_are_targets(text):
    try:
        Target(text)
    except MLCError as error:
        assert len(str(error)) < 1000


def test_a_json_text_that_is_no_target_is_refused():
    for text in ("{" * 100_000, '{"kind": "llvm", "num-cores": "many"}', "llvm -mcpu='"):
        with pytest.raises(DataError):
            Target(text)


@pytest.mark.parametrize(("tag", "kind", "threads", "shared"), [
    ("intel/arc-a770", "opencl", 1024, 65536), ("intel/iris-xe", "opencl", 512, 65536),
    ("qcom/adreno", "opencl", 1024, 32768), ("mesa/lavapipe", "webgpu", 256, 16384),
    ("google/swiftshader", "webgpu", 256, 16384), ("apple/m2-gpu", "metal", 1024, 32768),
])
def test_tags_of_gpus_have_their_limits(tag, kind, threads, shared):
    from mlc_lab.target.limits import limits_of

    target = Target(tag)
    limits = limits_of(target)
    assert (target.kind.name, limits.threads, limits.shared_bytes) == (kind, threads, shared)
    assert limits.block[0] == threads  # all of them along one axis
    assert Target(str(target)).kind.name == kind


def test_a_tag_of_a_cpu_says_its_processor_and_its_cores():
    target = Target("aws/cpu/c5.9xlarge")
    assert (target.kind.name, target.tag, list(target.keys)) == (
        "llvm", "aws/cpu/c5.9xlarge", ["x86", "cpu"])
    assert target.attrs["mcpu"] == "skylake-avx512" and int(target.attrs["num-cores"]) == 18
    assert Target("aws/cpu/c5.12xlarge").attrs["mcpu"] == "cascadelake"
    assert str(Target(str(target))) == str(target)


def test_figures_of_gpus_are_their_own_or_of_one_of_their_generation():
    from mlc_lab.target.gpus import MULTIPROCESSORS, USUAL, gpu_of
    from mlc_lab.target.tags import TAGS

    names = [tag for tag in TAGS if tag.startswith("nvidia/")]
    stand_for = {tag: gpu_of(Target(tag)) for tag in names}
    gpus = [gpu for tag, gpu in stand_for.items() if gpu.name == tag]
    assert len(gpus) == 23
    for tag, gpu in stand_for.items():
        arch = TAGS[tag]["arch"].removesuffix("a")
        if arch in MULTIPROCESSORS:
            assert gpu.processor is MULTIPROCESSORS[arch], tag
        assert gpu_of(Target(gpu.name)) == gpu
    assert stand_for["nvidia/geforce-rtx-3070-ti"].name == "nvidia/geforce-rtx-3060"
    assert stand_for["nvidia/nvidia-b100"].name == "nvidia/nvidia-h100"
    assert stand_for["nvidia/geforce-gtx-titan-x"].name == "nvidia/geforce-gtx-1080-ti"
    assert all(g.processors > 0 and g.clock > 1e9 and g.bandwidth > 1e11 for g in gpus)
    assert gpu_of(Target("webgpu")).name == gpu_of(Target("qcom/adreno")).name == USUAL
    # 2 x lanes x processors x clock, as the white papers have the peaks in TFLOP/s
    peak = {g.name: 2 * g.processor.fp32 * g.processors * g.clock / 1e12 for g in gpus}
    assert round(peak["nvidia/nvidia-a100"], 1) == 19.5
    assert round(peak["nvidia/geforce-rtx-4090"], 1) == 82.6
    assert round(peak["nvidia/nvidia-v100"], 1) == 15.7
    assert round(peak["nvidia/nvidia-t4"], 1) == 8.1


def test_figures_of_other_makers_are_what_they_publish_and_say_what_they_do_not():
    from mlc_lab.target.gpus import gpu_of

    def peak(tag):
        return round(gpu_of(Target(tag)).peak_flops / 1e12, 1)

    # as their announcements and product pages have them, in TFLOP/s and GHz
    assert peak("apple/m1-gpu") == peak("apple/m1-gpu-restricted") == 2.6
    assert peak("apple/m2-gpu") == 3.6 and peak("intel/arc-a770") == 17.2
    assert round(gpu_of(Target("intel/arc-a770")).clock / 1e9, 2) == 2.1
    assert round(gpu_of(Target("intel/iris-xe")).clock / 1e9, 2) == 1.35
    m1 = gpu_of(Target("apple/m1-gpu"))
    assert m1.processors * m1.processor.warps * m1.warp == 24576  # threads in flight
    arc = gpu_of(Target("intel/arc-a770"))
    assert arc.processor.warps * arc.warp == 128 * 16  # threads of a core, sub-groups of 16
    assert not arc.assumed and "registers" in m1.assumed
    assert "peak" in gpu_of(Target("apple/m3-gpu")).assumed



def test_tags_are_listed_and_a_name_of_ones_own_stands_for_a_target():
    tags = list_tags()
    assert tags["nvidia/geforce-rtx-3090-ti"].arch == "sm_86"
    assert tags["nvidia/tesla-k80"].arch == "sm_37"
    assert tags["nvidia/jetson-agx-xavier"].host.mcpu == "carmel"
    assert tags["arm/rasp4b64"].mcpu == "cortex-a72" and tags["arm/rasp4b64"].model == "bcm2711"
    assert tags["qcom/adreno-opencl-texture"].keys == (
        "adreno", "opencl", "gpu", "texture")
    assert sum(name.startswith("nvidia/") for name in tags) == 249
    try:
        mine = register_tag("mine/gpu", {"kind": "cuda", "arch": "sm_75"})
        assert mine.arch == Target("mine/gpu").arch == "sm_75" and "mine/gpu" in list_tags()
        with pytest.raises(DataError, match="known already"):
            register_tag("mine/gpu", {"kind": "llvm"})
        assert register_tag("mine/gpu", {"kind": "llvm"}, override=True).kind.name == "llvm"
        with pytest.raises(DataError, match="unknown target kind"):
            register_tag("mine/other", {"kind": "lvm"})
        assert "mine/other" not in TAGS
    finally:
        TAGS.pop("mine/gpu", None)
