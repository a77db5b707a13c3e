// The tables of the index, as migration steps from each version to the next (PRAGMA user_version). Released
// steps never change; new ones are appended, with a test that migrates from the earlier tables.
#pragma once

#include <array>
#include <string_view>

namespace culprit::store {

// Times are nanoseconds since the epoch, or null. Texts are stored as bytes, because ids are untrusted.
inline constexpr std::array<std::string_view, 9> kSchemaSteps = {R"sql(
CREATE TABLE jobs (
  id TEXT PRIMARY KEY, state INTEGER NOT NULL, first_ns INTEGER, last_ns INTEGER, ended_ns INTEGER,
  hosts TEXT NOT NULL, verdict TEXT NOT NULL, run INTEGER NOT NULL DEFAULT 0);
CREATE INDEX jobs_by_time ON jobs (first_ns);
CREATE TABLE reports (
  job TEXT PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE, json TEXT NOT NULL);
CREATE TABLE diagnoses (
  job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE, id TEXT NOT NULL, first_ns INTEGER,
  last_ns INTEGER, json TEXT NOT NULL, state TEXT NOT NULL, confirmed_by TEXT NOT NULL DEFAULT '',
  confirmed_ns INTEGER, PRIMARY KEY (job, id));
CREATE INDEX diagnoses_by_time ON diagnoses (first_ns);
CREATE TABLE findings (
  job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE, time_ns INTEGER, json TEXT NOT NULL);
CREATE INDEX findings_by_job ON findings (job);
CREATE TABLE audit (
  row INTEGER PRIMARY KEY AUTOINCREMENT, time_ns INTEGER, who TEXT NOT NULL, what TEXT NOT NULL,
  subject TEXT NOT NULL, detail TEXT NOT NULL);
CREATE TABLE cleared (host TEXT PRIMARY KEY, time_ns INTEGER);
CREATE TABLE pool (kind TEXT PRIMARY KEY, text BLOB NOT NULL);
)sql",
                                                                 R"sql(
-- 2: every run of a job is kept. What diagnoses are of one kind stands with what people said of them.
CREATE TABLE jobs_2 (
  id TEXT NOT NULL, run INTEGER NOT NULL, state INTEGER NOT NULL, first_ns INTEGER, last_ns INTEGER,
  ended_ns INTEGER, hosts INTEGER, lines INTEGER, verdict TEXT NOT NULL, PRIMARY KEY (id, run));
INSERT INTO jobs_2 SELECT id, run, state, first_ns, last_ns, ended_ns, NULL, NULL, verdict FROM jobs;
CREATE TABLE reports_2 (
  job TEXT NOT NULL, run INTEGER NOT NULL, json TEXT NOT NULL, PRIMARY KEY (job, run),
  FOREIGN KEY (job, run) REFERENCES jobs_2 (id, run) ON DELETE CASCADE);
INSERT INTO reports_2 SELECT r.job, j.run, r.json FROM reports r JOIN jobs j ON j.id = r.job;
-- Rows of earlier runs are listed with the last run: their own run is unknown.
CREATE TABLE diagnoses_2 (
  job TEXT NOT NULL, run INTEGER NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL, first_ns INTEGER,
  last_ns INTEGER, json TEXT NOT NULL, state TEXT NOT NULL, judged_by TEXT NOT NULL DEFAULT '',
  judged_ns INTEGER, PRIMARY KEY (job, run, id),
  FOREIGN KEY (job, run) REFERENCES jobs_2 (id, run) ON DELETE CASCADE);
INSERT INTO diagnoses_2
  SELECT d.job, j.run, d.id,
    CASE WHEN NOT json_valid(d.json) THEN ''
         WHEN json_extract(d.json, '$.rule') IS NOT NULL THEN 'rule:' || json_extract(d.json, '$.rule')
         ELSE ifnull(json_extract(d.json, '$.detector'), '') || ':' ||
              ifnull(json_extract(d.json, '$.symptom'), '') END,
    d.first_ns, d.last_ns, d.json, d.state, d.confirmed_by, d.confirmed_ns
  FROM diagnoses d JOIN jobs j ON j.id = d.job;
CREATE TABLE findings_2 (
  job TEXT NOT NULL, run INTEGER NOT NULL, id TEXT NOT NULL, time_ns INTEGER, json TEXT NOT NULL,
  UNIQUE (job, run, id),
  FOREIGN KEY (job, run) REFERENCES jobs_2 (id, run) ON DELETE CASCADE);
INSERT INTO findings_2
  SELECT f.job, j.run, 'row ' || f.rowid, f.time_ns, f.json FROM findings f JOIN jobs j ON j.id = f.job
  ORDER BY f.rowid;
UPDATE audit SET detail = d.kind FROM diagnoses_2 d
  WHERE audit.what = 'confirm' AND d.judged_by <> '' AND audit.subject = d.job || '/' || d.id;
DROP TABLE findings;
DROP TABLE diagnoses;
DROP TABLE reports;
DROP TABLE jobs;
ALTER TABLE jobs_2 RENAME TO jobs;
ALTER TABLE reports_2 RENAME TO reports;
ALTER TABLE diagnoses_2 RENAME TO diagnoses;
ALTER TABLE findings_2 RENAME TO findings;
CREATE INDEX jobs_by_time ON jobs (first_ns);
CREATE INDEX diagnoses_by_time ON diagnoses (first_ns);
CREATE INDEX audit_judged ON audit (subject) WHERE what IN ('confirm', 'refute');
)sql",
                                                                 R"sql(
-- 3: which devices were suspected of corrupting data. It outlives the jobs: such faults hide for weeks.
CREATE TABLE device_faults (
  device TEXT NOT NULL, host TEXT NOT NULL, job TEXT NOT NULL, run INTEGER NOT NULL, diagnosis TEXT NOT NULL,
  step INTEGER, time_ns INTEGER, PRIMARY KEY (device, job, run, diagnosis));
CREATE INDEX device_faults_by_time ON device_faults (time_ns);
)sql",
                                                                 R"sql(
-- 4: what each healthy job taught, by owner. It is unknown who taught the one pool before.
DROP TABLE pool;
CREATE TABLE taught (
  job TEXT NOT NULL, run INTEGER NOT NULL, owner TEXT NOT NULL, why TEXT NOT NULL, time_ns INTEGER,
  forms INTEGER NOT NULL, text BLOB NOT NULL, PRIMARY KEY (job, run));
CREATE TABLE pool_log (
  row INTEGER PRIMARY KEY AUTOINCREMENT, time_ns INTEGER, what TEXT NOT NULL, job TEXT NOT NULL,
  run INTEGER NOT NULL, owner TEXT NOT NULL, why TEXT NOT NULL, forms INTEGER NOT NULL, who TEXT NOT NULL);
)sql",
                                                                 R"sql(
-- 5: lists of jobs need the rows that people judged, and those that may be a verdict, without reading all.
CREATE INDEX diagnoses_judged ON diagnoses (job, run) WHERE judged_by <> '';
CREATE INDEX diagnoses_leading ON diagnoses (first_ns, job, run) WHERE
  state = 'confirmed' OR (state = 'open' AND instr(substr(json, 1, 1024), '"verdict":true') > 0);
)sql",
                                                                 R"sql(
-- 6: lists of jobs show the headline of each run's last report.
ALTER TABLE jobs ADD COLUMN headline TEXT NOT NULL DEFAULT '';
)sql",
                                                                 R"sql(
-- 7: whether a diagnosis was announced as the verdict is a column; it was searched for in the text before.
ALTER TABLE diagnoses ADD COLUMN leads INTEGER NOT NULL DEFAULT 0;
UPDATE diagnoses SET leads = instr(substr(json, 1, 1024), '"verdict":true') > 0;
DROP INDEX diagnoses_leading;
CREATE INDEX diagnoses_leading ON diagnoses (first_ns, job, run) WHERE
  state = 'confirmed' OR (state = 'open' AND leads);
)sql",
                                                                 R"sql(
-- 8: judgements that the other members of a cluster do not have yet. `member`: whose run it is; empty: own.
CREATE TABLE unshared (
  job TEXT NOT NULL, id TEXT NOT NULL, member TEXT NOT NULL, run INTEGER NOT NULL, first_ns INTEGER,
  last_ns INTEGER, kind TEXT NOT NULL, is_right INTEGER NOT NULL, who TEXT NOT NULL, time_ns INTEGER,
  rule TEXT NOT NULL, PRIMARY KEY (job, id, member));
)sql",
                                                                 R"sql(
-- 9: what the members of a cluster taught each other. `shared`: the others have it.
ALTER TABLE taught ADD COLUMN member TEXT NOT NULL DEFAULT '';
ALTER TABLE taught ADD COLUMN shared INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pool_log ADD COLUMN shared INTEGER NOT NULL DEFAULT 0;
CREATE INDEX pool_log_forgotten ON pool_log (job, run) WHERE what = 'forgotten';
)sql"};

}  // namespace culprit::store
