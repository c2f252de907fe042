"""Which tests of devices are part of the suite here.

Those of a CUDA device are where there is one. Elsewhere they are deselected: what no part from a
package index can make run is neither passed nor skipped.
"""

from mlc_lab.runtime.driver import driver_of


def of_cuda(item):
    """Whether a test runs kernels on a CUDA device."""
    where = item.path.name
    if where == "test_cuda_device.py":
        return "dev" in item.fixturenames
    return where in ("test_real_devices.py", "test_gpu_models.py") and "cuda" in (
        getattr(item, "callspec", None) and item.callspec.params.get(name)
        for name in ("dev", "target"))


def pytest_collection_modifyitems(config, items):
    if not driver_of("cuda").simulated:
        return
    away = [item for item in items if hasattr(item, "fixturenames") and of_cuda(item)]
    if away:
        config.hook.pytest_deselected(items=away)
        items[:] = [item for item in items if item not in away]
