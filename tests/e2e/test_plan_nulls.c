/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries over data with many NULLs, one of each feature: the plan written back
 * as SQL gives the same types and rows in the same order as the query.
 */
#include "support/oracle.h"
#include "support/rewrite.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <stdlib.h>

enum { MOST_ROWS = 100000 };

static const char *const set_up[] = {
    "create table t as select case when i%5=0 then null else i end::int a, i%3 b, 'x'||i s, i*1.5::double f, (i*1.1)::decimal(9,2) d, {'p':i,'q':{'r':i*2}} st, [i,i+1,null] l, timestamp '2024-01-01'+to_hours(i) ts from range(40) t(i)",
    "create table u as select i k, i%4 g, case when i%3=0 then null else i end n from range(20) t(i)",
};

/* Each has one order of rows, or DuckDB with one thread gives it so. */
static const char *const queries[] = {
    "select list_reduce([1,2],lambda x,y: x+y+b, b*10) from t",
    "select list_reduce(l,lambda x,y,i: x+y+i+b) from t",
    "select struct_insert(st, z := a, w := s) from t",
    "select union_value(k := a), union_value(v := 'lit') from t",
    "select date_part(['year','month','epoch'], ts) from t",
    "select '12:00:01.5-03:30'::timetz, time '01:02:03', '00:00:00.123456789'::time_ns",
    "select 'infinity'::timestamp, '-infinity'::date, '44-03-15 (BC)'::date, '294247-01-10 04:00:54.775806'::timestamp",
    "select 170141183460469231731687303715884105727::hugeint, (-170141183460469231731687303715884105728)::hugeint, 340282366920938463463374607431768211455::uhugeint, -0.0::double, 'nan'::float, 1e308, 5e-324::double, 0.1::float",
    "select '\\x00\\xff'::blob, 'a'||chr(0)||'b', interval '1 month 2 days 3 seconds', '550e8400-e29b-41d4-a716-446655440000'::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid",
    "select map{'a':1,'b':null}, {'x':[1,null],'y':{'z':'q'}}, [[1],[],null], row(1,'a'), array_value(1,2,3)",
    "select t.st.p, t.st.q.r from t where t.st.q.r > 10",
    "select a, sum(a) over (order by f range between 3 preceding and 2 following) from t",
    "select a, sum(a) over (order by a desc nulls first range between 3 preceding and 2 following) from t",
    "select a, sum(b) over (partition by b order by ts range between interval 5 hours preceding and interval 1 hour following exclude ties) from t",
    "select lead(a, 2, -1) over (order by f), lag(a) over (order by f), nth_value(a, 3) over (order by f rows between unbounded preceding and unbounded following), fill(f order by ts) over (order by ts) from t",
    "select k, k in (select n from u u2 where u2.g=u.g) from u",
    "select k, (k,g) in (select n,g from u) from u",
    "select k, (k,g) not in (select n,g from u where k>5) from u",
    "select k, k > all (select n from u u2 where u2.g=u.g) from u",
    "select k, exists (select 1 from u u2 where u2.n > u.k) from u",
    "select k, (select n from u u2 where u2.k=u.k+1) from u",
    "select k, (select n from u u2 where u2.k=u.k and u2.g=u.g) from u order by k",
    "select distinct a from t order by a",
    "select distinct on (b) b, a from t order by b, a desc",
    "select distinct b from t order by b desc",
    "select b from t group by b, 1+1 order by b",
    "select count(*) from t group by ()",
    "select count(*), b, grouping(b), grouping(b,a) from t group by cube(a,b) order by all",
    "select sum(a) from t group by grouping sets ((),(b),(b))",
    "select * from (values (1,'a'),(null,'b')) v(x,y) order by x nulls first",
    "select * from u, lateral (values (u.k),(u.n)) v(x) order by all",
    "select * from t limit (select 3) offset (select 2)",
    "select k from u limit 10%",
    "select d+1.5, d*d, d-d, d*2, d/3, d%2, -d, d+d+d+d, sum(d*d) over () from t",
    "select sum(d), avg(d), min(d), sum(d*d), sum(d+1) from t",
    "select x.k, y.k from u x asof join u y on x.g=y.g and x.k>=y.n order by all",
    "select x.k, y.k from u x full join u y on x.n=y.k order by all",
    "select x.k from u x semi join u y on x.n=y.k and x.k<>y.g",
    "select x.k, y.n from u x left join u y on x.k<y.n and x.g=y.g order by all",
    "select * from u x positional join t y",
    "with recursive r(n) as (select 1 union all select n+1 from r where n<10) select * from r",
    "with recursive r(n) as (select 1 union all (with q as materialized (select n from r) select q.n+1 from q, q q2 where q.n<5 and q.n=q2.n)) select * from r",
    "select k from u where k between 3 and 7 and n not between 4 and 5",
    "select k from u where n > 3 and n < 9",
    "select case when a is null then 'n' when a>3 then s else 'z' end, coalesce(a, b, 0), nullif(a,3), try_cast(s as int), try(a/0) from t",
    "select s[2:3], l[1:2], l[:2], l[2:], l[-1], s[-2:] from t",
    "select l[1:3:2], l[:-:-1] from t",
    "select s like 'x_', s like '%1', s ilike 'X1%', s not like 'x1%', s similar to 'x[0-9]+', s glob 'x1*', regexp_matches(s,'1$') from t",
    "select random() >= 0, a from t",
    "select quantile_cont(a, [0.25,0.5]), quantile_disc(a, 0.3), quantile_disc(f, -0.3), quantile_cont(f, -0.25), mad(a), median(f), mode(b) from t",
    "select percentile_disc(0.25) within group (order by a desc), percentile_cont([0.1,0.9]) within group (order by f desc) from t",
    "select string_agg(s, ', ' order by a desc nulls first), list(a order by f desc) filter (where b=1), count(distinct b), sum(distinct b), array_agg(distinct b order by b) from t",
    "select histogram(b), arg_max(s,a), arg_min(s,a,2), max(a,3), min_by(s,f), approx_count_distinct(a)>0 from t",
    "select unnest(l), unnest([1,2]), b from t",
    "select unnest(st) from t",
    "select unnest([{'a':1,'b':2},{'a':3,'b':null}], recursive := true)",
    "select * from range(3) r(i), range(r.i) q(j) order by all",
    "select * from u, unnest([u.k, u.n]) z(v) order by all",
    "select *, row_number() over () from generate_series(timestamp '2024-01-01', timestamp '2024-01-02', interval 6 hours)",
    "select json_extract(j,'$.a'), j->>'a', j->'$.b[0]', json_array_length(j,'$.b') from (select ('{\"a\":'||k||',\"b\":[1,2]}')::json j from u)",
    "select list_filter(l, lambda x: x > a), list_transform(l, lambda x, i: x*i+b), [z*2 for z in l if z is not null] from t",
    "select list_transform([[1,2],[3]], lambda q: list_transform(q, lambda w: w+b+len(q))) from t",
    "select list_aggregate(l,'sum'), list_aggregate(l,'string_agg','-'), list_sum(l), list_sort(l,'DESC'), list_distinct(l), len(l) from t",
    "select list_aggregate(l,'median') from t",
    "select date_trunc('month',ts), ts + interval 1 day, extract('hour' from ts), strftime(ts,'%d/%m'), ts::date - date '2023-01-01', age(ts, timestamp '2020-01-01'), epoch_ms(ts) from t",
    "select st, st.p, struct_extract(st,'p'), st['p'], struct_pack(a := a, \"odd \"\" name\" := s) from t",
    "select u.* from u where (k, g) in ((1,1),(2,2),(3,3),(7,3),(9,1),(10,2))",
    "select * from u where g in (0,1,2,3,4,5,6) and k not in (2,4,6,8,10,12)",
    "select k from u where k=1 or k=5 or (k>7 and g=3)",
    "select 'a' collate nocase = 'A', s collate nocase from t order by s collate nocase limit 3",
    "select k from u union select n from u order by 1",
    "select k from u except all select n from u",
    "select n from u intersect select k from u",
    "(select k from u order by k desc limit 3) union all (select n from u order by n limit 2)",
    "select count(*) from (select k from u union all select k from u union all select n from u) q",
    "select enum_first(null::enum('a','b')), 'b'::enum('','b'), ''::enum('','b')",
    "select sum(1) filter (where b=1), count(a), count(*) from t where false",
    "select k, sum(sum(k)) over (order by k) from u group by k having sum(k)>3",
    "select count(*) from u a, u b, u c where a.k=b.k and b.g=c.k and a.n is not null",
    "select * from u qualify row_number() over (partition by g order by k desc)=1 order by g",
    "select g, first(k), last(k), any_value(n) from u group by g order by g",
    "pivot u on g in (0,1,2) using sum(k), count(n)",
    "unpivot (select k,g,n from u) on g, n",
    "select rowid, k from u where rowid < 3",
    "select current_date=current_date, now()=now(), pi(), version()",
    "select max(ts) - min(ts), avg(f), stddev(f), corr(a,b), regr_slope(a,b), bit_xor(a), bool_and(a>0), product(b+1), entropy(b), kurtosis(f), covar_pop(a,f) from t",
    "select summarize_me.* from (select min(k) mn, max(k) mx from u) summarize_me",
    "with recursive r(n,m) as (select k,g from u union select u.k, r.n from r join u on u.k=r.m) select * from r order by all",
    "select k, (select max(n) from u u2 where u2.g=u.g and u2.k<u.k) from u order by k",
    "select greatest(a,b), least(a,3), sign(a), a%2, a//2, a/2, 7^2, a & 3, a | 4, ~a, a << 2 from t",
};

static bool is_same(oracle *o, const char *sql) {
  rewrite written;
  oracle_rows expected = {0}, rows = {0};
  rewrite_query(o, sql, NULL, NULL, &written);
  char *error = oracle_query(o, sql, MOST_ROWS, &expected);
  if (error == NULL && written.outcome == REWRITE_DONE) {
    error = oracle_query(o, written.sql, MOST_ROWS, &rows);
  }
  bool is_right =
      error == NULL && written.outcome == REWRITE_DONE && oracle_compare(&expected, &rows) == ORACLE_SAME;
  if (!is_right) {
    print_error("%s: %s\n", sql,
                error != NULL                     ? error
                : written.outcome == REWRITE_DONE ? oracle_difference(&expected, &rows)
                                                  : written.why);
  }
  free(error);
  oracle_rows_free(&expected);
  oracle_rows_free(&rows);
  rewrite_free(&written);
  return is_right;
}

static void query_over_nulls_is_the_same(void **state) {
  (void)state;
  oracle *o = oracle_open();
  size_t n = sizeof queries / sizeof queries[0], same = 0;
  for (size_t i = 0; i < sizeof set_up / sizeof set_up[0]; i++) {
    assert_null(oracle_run(o, set_up[i]));
  }
  for (size_t i = 0; i < n; i++) {
    same += is_same(o, queries[i]) ? 1 : 0;
  }
  oracle_close(o);
  print_message("%zu of %zu queries the same\n", same, n);
  assert_int_equal(same, n);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(query_over_nulls_is_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
