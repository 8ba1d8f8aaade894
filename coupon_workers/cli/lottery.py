"""``coupon-workers lottery``: show how a lottery stands, pause, resume, end it."""

from __future__ import annotations

import click

from coupon_workers.cli.batch import identity
from coupon_workers.cli.connect import OPERATOR, cli_settings
from coupon_workers.lottery.lottery_control import end_lottery, pause_lottery, resume_lottery
from coupon_workers.lottery.lottery_reading import LotteryAnswer, read_one
from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.services import Services


@click.group(short_help="Look after lotteries.")
def lottery() -> None:
    """Lotteries: prizes drawn at odds. They are made over HTTP: POST /v1/lotteries."""


@lottery.command()
@click.argument("lottery_id", type=identity, metavar="NO")
@click.option("--json", "as_json", is_flag=True, help="In the form of GET /v1/lotteries/{lottery_id}.")
def show(lottery_id: int, as_json: bool) -> None:
    """Show how a lottery stands, prize by prize."""
    answer = read_one(make_services(cli_settings()), lottery_id)
    if as_json:
        click.echo(answer.model_dump_json())
        return
    click.echo(_sentence(answer))
    for prize in answer.prizes:
        observed = "no draws yet" if prize.observed_odds is None else f"{prize.observed_odds:.4%} of draws"
        click.echo(
            f"{prize.prize_no}. {prize.name}: {prize.drawn:,} of {prize.stock:,} drawn, {prize.left:,} left;"
            f" {observed}, meant {prize.expected_odds:.4%}"
        )


@lottery.command()
@click.argument("lottery_id", type=identity, metavar="NO")
def pause(lottery_id: int) -> None:
    """Nobody draws until it is resumed."""
    services = make_services(cli_settings())
    pause_lottery(services, lottery_id)
    _tell(services, lottery_id)


@lottery.command()
@click.argument("lottery_id", type=identity, metavar="NO")
def resume(lottery_id: int) -> None:
    """Draws are accepted again."""
    services = make_services(cli_settings())
    resume_lottery(services, lottery_id)
    _tell(services, lottery_id)


@lottery.command()
@click.argument("lottery_id", type=identity, metavar="NO")
def end(lottery_id: int) -> None:
    """End it for good; what is left of its prizes goes back when the last draw is settled."""
    services = make_services(cli_settings())
    end_lottery(services, lottery_id, OPERATOR)
    _tell(services, lottery_id)


def _tell(services: Services, lottery_id: int) -> None:
    click.echo(_sentence(read_one(services, lottery_id)))


def _sentence(answer: LotteryAnswer) -> str:
    return (
        f"lottery {answer.lottery_id} is {answer.status}: {answer.draws:,} draws, {answer.none:,} of them won nothing"
    )
