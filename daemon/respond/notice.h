// Content of messages: the values for templates, and the bodies of the built-in formats. Pure; any thread.
// All texts of jobs are untrusted: values are shortened, and each format escapes what it inserts.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/alert.h"

namespace culprit::respond {

struct NoticeContext {
  std::string url;   // base URL of the page, without a trailing slash; empty: unknown
  std::string host;  // of this daemon
};

using Values = std::map<std::string, std::string>;

// Template values: state, title, job, run, summary, link, command, key, id, and others (formats.md section
// 12).
Values values_of(const alert::Issue& issue, const alert::Message& message, const NoticeContext& context);
// A message that says it is a test.
alert::Issue test_issue(const std::string& host, TimeNs now);
// Appends "#/jobs/ID?run=2" to the url; empty without a url.
std::string job_link(const alert::Fault& fault, const std::string& url);
// Link to the alert, where a person can acknowledge it: "#/jobs/ID?run=2&alert=KEY".
std::string alert_link(const alert::Issue& issue, const std::string& url);
std::string line_link(const alert::Fault& fault, const std::string& url);

// Replaces {{name}}, {{name|slack}}, {{name|markdown}} and {{name|firing:trigger|resolved:resolve}} by
// their values, escaped for a JSON string. An error names the unknown part, or says why the result is no
// JSON.
Result<std::string> render(std::string_view text, const Values& values);

// The body of a webhook without a template.
std::string webhook_body(const alert::Issue& issue, const Values& values);

// Body of POST /api/v2/alerts. The labels of an issue never change, except when a warning becomes critical:
// then the alert with the previous label gets an end time.
std::string alertmanager_body(const std::vector<alert::Issue>& issues, const NoticeContext& context,
                              TimeNs now);

// Body of POST /api/v2/silences: for a silenced issue, until the silence ends.
std::string alertmanager_silence(const alert::Issue& issue, TimeNs now);

// A whole mail with its headers, for sendmail.
struct MailAddresses {
  std::string from;
  std::vector<std::string> to;
};
std::string mail_text(const Values& values, const MailAddresses& addresses, TimeNs now);

// "2026-11-26T02:12:09.123Z".
std::string rfc3339(TimeNs time);

}  // namespace culprit::respond
