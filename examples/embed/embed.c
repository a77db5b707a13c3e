/* Reads a log from standard input as one source and prints what was found, then the report. From the top of
 * the repository, once for the library, then for the program, which remembers where the library lies:
 *   cmake --preset release && cmake --build --preset release --target culprit_shared
 *   cc -I sdk/include examples/embed/embed.c -L build/release/lib -Wl,-rpath,"$PWD/build/release/lib" \
 *     -lculprit -o embed
 *   ./embed < job.log */
#include <culprit/embed.h>
#include <stdio.h>

int main(void) {
  char error[256];
  culprit_job* job = culprit_create(NULL, error, sizeof error);
  if (!job) {
    fprintf(stderr, "embed: %s\n", error);
    return 2;
  }
  const culprit_source info = {sizeof info, "stdin", NULL, -1, -1};
  const int source = culprit_open(job, &info);
  char buffer[65536];
  size_t n;
  culprit_finding finding = {sizeof finding, NULL, NULL, NULL, 0, 0, NULL};
  while ((n = fread(buffer, 1, sizeof buffer, stdin)) > 0) {
    if (culprit_feed(job, source, buffer, n) != 0) {
      fprintf(stderr, "embed: %s\n", culprit_error(job));
      culprit_destroy(job);
      return 2;
    }
    while (culprit_poll(job, &finding))
      printf("%s:%llu: %s\n", finding.source, (unsigned long long)finding.line, finding.title);
  }
  culprit_close(job, source);
  while (culprit_poll(job, &finding))
    printf("%s:%llu: %s\n", finding.source, (unsigned long long)finding.line, finding.title);
  char* report = culprit_report(job);
  if (report) puts(report);
  culprit_free(report);
  culprit_destroy(job);
  return 0;
}
