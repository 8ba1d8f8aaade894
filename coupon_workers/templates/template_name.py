"""The names of templates, for lists of what was made of them."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import text

from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

_NAMES = text("SELECT template_id, name FROM coupon_template WHERE template_id = ANY (:template_ids)")


def read_names(services: Services, template_ids: Iterable[str]) -> dict[str, str]:
    """Names by identity, both as answers have them; one that is not there is left out. Raises ``StoreUnavailable``."""
    wanted = sorted({int(template_id) for template_id in template_ids})
    with transaction(services.engine) as connection:
        return {str(row.template_id): row.name for row in connection.execute(_NAMES, {"template_ids": wanted})}
