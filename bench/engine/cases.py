"""The queries. Each is written the way its contender likes it best.

So DuckDB gets the list functions that were measured as its fastest, and Spark by hand reads
`payload.commits.message` rather than whole commits. What is compared is the same rows of the same
columns under the same names; `digest.py` checks that. Our sorts are stable, so Spark sorts by hand
by the row's place in the file, too. What that costs shows in `sort_any_ties`, where Spark may give
rows with equal keys in any order: less work than ours, so it has no goal.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

import millpond as mp
from bench.engine.case import AS_FAST, Case

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millpond.plan.node import Plan

MANY_STARS: Final = 1_000
FROM: Final = dt.datetime(2024, 1, 15, tzinfo=dt.UTC)
UNTIL: Final = FROM + dt.timedelta(hours=7, minutes=12)  # 1 % of the 30 days


def _filter_range(events: Plan) -> Plan:
    return events.filter((mp.col("created_at") >= FROM) & (mp.col("created_at") < UNTIL))


def _filter_range_spark(events: DataFrame) -> DataFrame:
    return events.where(f"created_at >= timestamp '{FROM}' and created_at < timestamp '{UNTIL}'")


def _filter_nested(events: Plan) -> Plan:
    wanted = (mp.path("repo.stars") > MANY_STARS) & (mp.path("payload.action") == "opened")
    return events.filter(wanted).select(
        "id", mp.path("repo.name").alias("repo"), mp.path("payload.number").alias("number")
    )


def _filter_nested_spark(events: DataFrame) -> DataFrame:
    wanted = events.where(f"repo.stars > {MANY_STARS} and payload.action = 'opened'")
    return wanted.selectExpr("id", "repo.name as repo", "payload.number as number")


def _any_label(events: Plan) -> Plan:
    return events.filter(mp.path("payload.labels").any(mp.element() == "p0")).select("id")


def _any_commit(events: Plan) -> Plan:
    reverts = mp.path("payload.commits").any(mp.path("message").contains("revert"))
    return events.filter(reverts).select("id")


def _any_commit_spark(events: DataFrame) -> DataFrame:
    reverts = "exists(payload.commits.message, message -> contains(message, 'revert'))"
    return events.where(reverts).select("id")


def _top_k(events: Plan) -> Plan:
    return events.top_k(10, mp.col("score").desc(), "id")


def _top_k_nested(events: Plan) -> Plan:
    best = events.top_k(100, mp.path("repo.stars").desc(), "id")
    return best.select(
        "id", mp.path("repo.name").alias("repo"), mp.path("actor.login").alias("login")
    )


def _top_k_nested_spark(events: DataFrame) -> DataFrame:
    columns = events.selectExpr("id", "repo.name repo", "actor.login login", "repo.stars stars")
    best = columns.orderBy(columns.stars.desc_nulls_last(), "id").limit(100)
    return best.drop("stars")


def _group(events: Plan) -> Plan:
    return events.aggregate(
        "type",
        n=mp.agg.count(),
        stars=mp.agg.sum(mp.path("repo.stars")),
        score=mp.agg.mean("score"),
        latest=mp.agg.max("created_at"),
    )


def _group_spark(events: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return events.groupBy("type").agg(
        f.count("*").alias("n"),
        f.sum("repo.stars").alias("stars"),
        f.mean("score").alias("score"),
        f.max("created_at").alias("latest"),
    )


def _group_high(events: Plan) -> Plan:
    key = mp.path("repo.id").alias("repo")
    return events.aggregate(key, n=mp.agg.count(), best=mp.agg.max("score"))


def _group_high_spark(events: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    groups = events.groupBy(f.col("repo.id").alias("repo"))
    return groups.agg(f.count("*").alias("n"), f.max("score").alias("best"))


def _sort(events: Plan) -> Plan:
    return events.select("id", "score", mp.path("repo.name").alias("repo")).sort("score", "id")


def _sort_spark(events: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    rows = events.selectExpr("id", "score", "repo.name as repo")
    rows = rows.withColumn("place", f.monotonically_increasing_id())
    return rows.orderBy("score", "id", "place").drop("place")


def _sort_any_ties_spark(events: DataFrame) -> DataFrame:
    return events.selectExpr("id", "score", "repo.name as repo").orderBy("score", "id")


def _projection(events: Plan) -> Plan:
    leaves = {"login": "actor.login", "repo": "repo.name", "action": "payload.action"}
    return events.select(**{name: mp.path(path) for name, path in leaves.items()})


CASES: Final = (
    Case(
        "filter_flat",
        plan=lambda events: events.filter(mp.col("type") == "DeleteEvent"),
        sql="select * from {events} where type = 'DeleteEvent'",
        spark=lambda events: events.where("type = 'DeleteEvent'"),
    ),
    Case(
        "filter_range",
        plan=_filter_range,
        sql="select * from {events} "
        f"where created_at >= timestamptz '{FROM}' and created_at < timestamptz '{UNTIL}'",
        spark=_filter_range_spark,
    ),
    Case(
        "filter_nested",
        plan=_filter_nested,
        sql="select id, repo.name as repo, payload.number as number from {events} "
        f"where repo.stars > {MANY_STARS} and payload.action = 'opened'",
        spark=_filter_nested_spark,
        arrow_limit=AS_FAST,
    ),
    Case(
        "filter_list_any_scalar",
        plan=_any_label,
        sql="select id from {events} where list_contains(payload.labels, 'p0')",
        spark=lambda events: events.where("array_contains(payload.labels, 'p0')").select("id"),
        arrow_limit=AS_FAST,
    ),
    Case(
        "filter_list_any_struct",
        plan=_any_commit,
        sql="select id from {events} where list_bool_or("
        "list_transform(payload.commits, lambda c: contains(c.message, 'revert')))",
        spark=_any_commit_spark,
        arrow_limit=AS_FAST,
    ),
    Case(
        "top_k",
        plan=_top_k,
        sql="select * from {events} order by score desc, id limit 10",
        spark=lambda events: events.orderBy(events.score.desc_nulls_last(), "id").limit(10),
        order="sorted",
        arrow_limit=AS_FAST,
    ),
    Case(
        "top_k_nested",
        plan=_top_k_nested,
        sql="select id, repo.name as repo, actor.login as login from {events} "
        "order by repo.stars desc, id limit 100",
        spark=_top_k_nested_spark,
        order="sorted",
        arrow_limit=AS_FAST,
    ),
    Case(
        "group",
        plan=_group,
        sql="select type, count(*) as n, sum(repo.stars)::bigint as stars, avg(score) as score, "
        "max(created_at) as latest from {events} group by type",
        spark=_group_spark,
        order="free",
    ),
    Case(
        "group_high",
        plan=_group_high,
        sql="select repo.id as repo, count(*) as n, max(score) as best from {events} group by 1",
        spark=_group_high_spark,
        order="free",
    ),
    Case(
        "sort",
        plan=_sort,
        sql="select id, score, repo.name as repo from {events} order by score, id",
        spark=_sort_spark,
        order="sorted",
    ),
    Case(
        "sort_any_ties",
        plan=_sort,
        sql="select id, score, repo.name as repo from {events} order by score, id",
        spark=_sort_any_ties_spark,
        order="sorted",
        arrow_limit=None,
        spark_limit=None,
    ),
    Case(
        "projection",
        plan=_projection,
        sql="select actor.login as login, repo.name as repo, payload.action as action "
        "from {events}",
        spark=lambda events: events.selectExpr(
            "actor.login as login", "repo.name as repo", "payload.action as action"
        ),
    ),
)


def case_named(name: str) -> Case:
    """The case of this name."""
    return next(case for case in CASES if case.name == name)
