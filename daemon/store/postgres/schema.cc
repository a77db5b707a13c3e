#include "store/postgres/schema.h"

#include <fmt/format.h>

#include <iterator>

namespace culprit::store::postgres {
namespace {

struct Version {
  int number;
  const char* sql;
};

constexpr Version kVersions[] = {
    {1, R"(
    IF to_regnamespace('culprit') IS NULL THEN
      CREATE SCHEMA culprit;
    END IF;
    CREATE TABLE culprit.member (
      name text PRIMARY KEY,
      address text NOT NULL,
      seen timestamptz NOT NULL
    );
    CREATE TABLE culprit.part (
      part smallint PRIMARY KEY,
      owner text,
      epoch bigint NOT NULL DEFAULT 0,
      until timestamptz NOT NULL DEFAULT '-infinity'
    );
    INSERT INTO culprit.part (part) SELECT generate_series(0, 63);
    CREATE TABLE culprit.action (
      what text PRIMARY KEY,
      op text NOT NULL,
      job text NOT NULL,
      kind text NOT NULL,
      target text NOT NULL,
      decision text NOT NULL,
      part smallint NOT NULL,
      epoch bigint NOT NULL,
      member text NOT NULL,
      at timestamptz NOT NULL DEFAULT clock_timestamp(),
      sent integer NOT NULL DEFAULT 1
    );
    CREATE INDEX action_op ON culprit.action (op);
    CREATE TABLE culprit.version (version integer NOT NULL);
    INSERT INTO culprit.version VALUES (1);)"},
    // `needs`: members of an earlier version are refused.
    {2, R"(
    ALTER TABLE culprit.version ADD needs integer NOT NULL DEFAULT 1;)"},
    {3, R"(
    CREATE TABLE culprit.report (
      job text PRIMARY KEY,
      run bigint NOT NULL,
      part smallint NOT NULL,
      epoch bigint NOT NULL,
      member text NOT NULL,
      as_of timestamptz NOT NULL,
      uid bigint,
      listed text NOT NULL,
      body bytea NOT NULL
    );
    ALTER TABLE culprit.report ALTER body SET STORAGE EXTERNAL;)"},
    // Evidence in object storage.
    {4, R"(
    CREATE TABLE culprit.archive (
      archive text PRIMARY KEY,
      member text NOT NULL,
      epoch bigint NOT NULL,
      number bigint NOT NULL DEFAULT 0,
      segment bigint NOT NULL DEFAULT 0,
      at bigint NOT NULL DEFAULT 0
    );
    CREATE TABLE culprit.segment (
      archive text NOT NULL,
      number bigint NOT NULL,
      epoch bigint NOT NULL,
      member text NOT NULL,
      key text NOT NULL,
      bytes bigint NOT NULL,
      index_at bigint NOT NULL,
      sha256 text NOT NULL,
      index_sha256 text NOT NULL,
      hosts bigint NOT NULL,
      jobs bigint NOT NULL,
      from_segment bigint NOT NULL,
      from_at bigint NOT NULL,
      to_segment bigint NOT NULL,
      to_at bigint NOT NULL,
      stored timestamptz NOT NULL DEFAULT clock_timestamp(),
      PRIMARY KEY (archive, number)
    );
    CREATE INDEX segment_stored ON culprit.segment (stored);)"},
    {5, R"(
    CREATE TABLE culprit.ledger (
      kind text NOT NULL,
      key text NOT NULL,
      job text NOT NULL,
      stamp bigint NOT NULL,
      member text NOT NULL,
      at timestamptz NOT NULL,
      line text NOT NULL,
      PRIMARY KEY (kind, key)
    );
    CREATE INDEX ledger_job ON culprit.ledger (job) WHERE job <> '';
    CREATE INDEX ledger_at ON culprit.ledger (at);
    ALTER TABLE culprit.member ADD takes boolean NOT NULL DEFAULT true;)"},
    {6, R"(
    ALTER TABLE culprit.member ADD http text NOT NULL DEFAULT '';)"},
    {7, R"(
    CREATE TABLE culprit.judgement (
      key text PRIMARY KEY,
      job bytea NOT NULL,
      id text NOT NULL,
      numbered_by text NOT NULL,
      run bigint NOT NULL,
      first_ns bigint NOT NULL,
      last_ns bigint NOT NULL,
      kind text NOT NULL,
      is_right boolean NOT NULL,
      who text NOT NULL,
      time_ns bigint NOT NULL,
      rule text NOT NULL,
      member text NOT NULL,
      at timestamptz NOT NULL
    );
    CREATE INDEX judgement_at ON culprit.judgement (at);)"},
    // What healthy jobs taught.
    {8, R"(
    CREATE TABLE culprit.pool (
      key text PRIMARY KEY,
      job bytea NOT NULL,
      run bigint NOT NULL,
      owner text NOT NULL,
      why text NOT NULL,
      time_ns bigint NOT NULL,
      forms bigint NOT NULL,
      body bytea NOT NULL,
      forgotten text NOT NULL,
      member text NOT NULL,
      at timestamptz NOT NULL
    );
    CREATE INDEX pool_at ON culprit.pool (at);
    CREATE INDEX pool_owner ON culprit.pool (owner, time_ns);)"},
    // A member that lost its disk, with its ledger, is as another one.
    {9, R"(
    ALTER TABLE culprit.action ADD ledger text NOT NULL DEFAULT '';)"},
    {10, R"(
    CREATE INDEX action_at ON culprit.action (at);)"},
};

}  // namespace

// The lock ends with the transaction.
std::string migration() {
  const int own = std::end(kVersions)[-1].number;
  std::string out = fmt::format(R"(DO $$
DECLARE
  have integer := 0;
  needed integer := 1;
BEGIN
  PERFORM pg_advisory_xact_lock(7165023466);
  IF to_regclass('culprit.version') IS NOT NULL THEN
    SELECT max(version) INTO have FROM culprit.version;
  END IF;
  IF have > 1 THEN
    SELECT max(needs) INTO needed FROM culprit.version;
  END IF;
  IF needed > {} THEN
    RAISE EXCEPTION 'the tables are of version %, made by a newer culpritd', have;
  END IF;)",
                                own);
  for (const Version& one : kVersions)
    out += fmt::format("\n  IF have < {} THEN{}\n    UPDATE culprit.version SET version = {};\n  END IF;",
                       one.number, one.sql, one.number);
  return out + "\nEND $$";
}

}  // namespace culprit::store::postgres
