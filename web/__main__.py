"""``python -m web``: the front."""

from __future__ import annotations

import sys

from coupon_workers.errors import CouponWorkersError, SettingsError
from coupon_workers.runtime.settings import settings
from coupon_workers.runtime.structured_log import configure_logs


def main() -> int:
    """Serve until told to stop. Returns 2 for a bad setting, 1 when it cannot listen."""
    from web.server import serve

    try:
        configure_logs(settings())
        serve(settings())
    except SettingsError as error:
        print(f"web: {error}", file=sys.stderr)  # noqa: T201 - there is no log yet
        return 2
    except CouponWorkersError as error:
        print(f"web: {error}", file=sys.stderr)  # noqa: T201 - whoever started it by hand reads this
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
