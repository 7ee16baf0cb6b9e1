"""Several processes that train one run together, each a part of every batch on a device of its own: `torchrun -m methods.train ...`.

They compute what one process would compute, up to rounding: a batch is that of one process, cut into consecutive parts; random numbers
are drawn for the whole batch by every process, which then takes those of its part; gradients are those of the whole batch's mean. Nothing
that is trained differs between processes, so each of them makes every decision (masks, rewiring, the best epoch) by itself and alike. Parts
may be uneven or empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

from methods.core.errors import UserError
from methods.data.part import Part, PartDraws
from methods.data.split import within


@dataclass(frozen=True, kw_only=True)
class World:
    """This process among those of its run. Alone, everything it is given comes back as it was."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that writes files and speaks."""
        return self.rank == 0

    def part(self, total: int) -> Part | None:
        """This process's part of a batch, sizes differing by at most one; none for one process, which has all of it."""
        if self.size == 1:
            return None
        here = within(total, self.share)
        return Part(here.start, here.stop, total)

    @property
    def share(self) -> tuple[int, int]:
        """Which part of each batch this process has, of how many."""
        return self.rank, self.size

    def draws(self, generator: torch.Generator, part: Part | None) -> torch.Generator:
        """The generator, for a part."""
        if part is None:
            return generator
        draws = PartDraws(generator.device)
        draws.set_state(generator.get_state())
        draws.part = part
        return draws

    def weigh(self, loss: Tensor, part: Part | None) -> Tensor:
        """A mean over the part as its share of the mean over the batch. Before backward: synchronised batch norms mix the gradients."""
        return loss if part is None else loss * (part.count / part.total)

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace each gradient by its sum over the processes."""
        if self.size > 1:
            _together([p.grad for p in parameters if p.grad is not None], dist.all_reduce)

    def add(self, means: Mapping[str, Tensor], count: int) -> dict[str, Tensor]:
        """Sums over the batch from means over `count` images of each process; a mean over no image is none."""
        sums = {name: mean.detach() * count for name, mean in means.items()}
        if self.size > 1:
            whole = torch.stack([total if count else torch.zeros_like(total) for total in sums.values()])
            dist.all_reduce(whole)
            sums = dict(zip(sums, whole.unbind(), strict=True))
        return sums

    def total(self, own: Tensor) -> Tensor:
        """The sum over the processes."""
        if self.size > 1:
            dist.all_reduce(own)
        return own

    def any(self, *flags: bool) -> list[bool]:
        """Whether each flag is up in some process. Asked on the host, so that a GPU is not waited for."""
        if self.size == 1:
            return list(flags)
        raised = torch.tensor(flags, dtype=torch.int32)
        dist.all_reduce(raised, op=dist.ReduceOp.MAX)
        return [bool(flag) for flag in raised]

    def wait(self) -> None:
        """Until every process is here."""
        self.any(False)

    def copy_from_first(self, tensors: Iterable[Tensor]) -> None:
        """Make tensors equal to those of the first process."""
        if self.size > 1:
            _together(list(tensors), lambda flat: dist.broadcast(flat, 0))

    def check(self, tensors: Mapping[str, Tensor]) -> None:
        """Fail where a tensor is not, bit for bit, the same in every process."""
        if self.size == 1 or not tensors:
            return
        sums = torch.stack([_bits(tensor) for tensor in tensors.values()])
        low, high = sums.clone(), sums
        dist.all_reduce(low, op=dist.ReduceOp.MIN)
        dist.all_reduce(high, op=dist.ReduceOp.MAX)
        if apart := [name for name, same in zip(tensors, (low == high).tolist(), strict=True) if not same]:
            raise UserError(
                f"the {self.size} processes of this run have come apart in {len(apart)} tensor(s) ({', '.join(apart[:3])}): a fault of the"
                " code or of a device; train it with one process"
            )

    def leave(self) -> None:
        """Together: a process that goes first would be taken for one that failed."""
        if self.size > 1:
            self.wait()
            dist.destroy_process_group()


ALONE = World()


@torch.no_grad()
def _together(tensors: list[Tensor], collective: Callable[[Tensor], object]) -> None:
    """Do the same to many tensors, in place, in one message per type of number."""
    for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
        same = [tensor for tensor in tensors if tensor.dtype == dtype]
        flat = torch.cat([tensor.detach().reshape(-1) for tensor in same])
        collective(flat)
        for tensor, part in zip(same, flat.split([tensor.numel() for tensor in same]), strict=True):
            tensor.copy_(part.view(tensor.shape))


def _bits(tensor: Tensor) -> Tensor:
    """A number that changes with any bit of a tensor of 4- or 8-byte numbers, whatever order a device adds in."""
    raw = tensor.detach().reshape(-1).contiguous()
    return raw.view(torch.int32 if raw.element_size() == 4 else torch.int64).sum(dtype=torch.int64)
