"""Can it be answered? Who provides each bind-field? If not, what would help? Nothing here asks a source."""

from mediator.binding.choice import choose
from mediator.binding.explain import explain
from mediator.binding.model import Input, Provider, Verdict
from mediator.binding.verdict import verdict

__all__ = ["Input", "Provider", "Verdict", "choose", "explain", "verdict"]
