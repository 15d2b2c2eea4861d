"""Set-up of the unit tests."""

from hypothesis import HealthCheck, settings

# A busy machine is no bug: no test fails by the clock, and a red build can be repeated.
settings.register_profile(
    "unit", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("unit")
