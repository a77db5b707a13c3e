/* culprit/plugin.h for C++11: a detector is a class, a finding has members that own their texts, and no
 * exception crosses the border. Header only; the contract (ownership, threads, errors) is plugin.h's.
 *
 *   class FanWatch : public culprit::Detector {
 *    public:
 *     explicit FanWatch(const culprit::Host& host) : Detector(host) {}
 *     void tick(int64_t now_ns) override { ... host().emit(finding); }
 *   };
 *   CULPRIT_PLUGIN(FanWatch, description)      // const culprit_description description = {...};
 *
 * An exception from a member of the detector becomes CULPRIT_ERROR (std::bad_alloc: CULPRIT_ERROR_MEMORY) and
 * a line in the daemon's log; the daemon then restarts the detector. */
#ifndef CULPRIT_PLUGIN_HPP
#define CULPRIT_PLUGIN_HPP

#include <culprit/plugin.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace culprit {

/* culprit_detector_finding with texts of its own; the meaning of each member is there. */
struct Finding {
  std::string id, title, text, category, component, symptom, action, remedy, host, job, peer, part, restart;
  int64_t rank = CULPRIT_NONE, device = CULPRIT_NONE, time_ns = CULPRIT_NO_TIME;
  double confidence = 0.5;
  uint32_t severity = CULPRIT_WARNING, state = CULPRIT_HAPPENED;
  std::vector<std::pair<std::string, double>> values;
};

/* The daemon. A copy refers to the same one; it lives until the detector is destroyed. */
class Host {
 public:
  explicit Host(const culprit_host* host) : host_(host) {}

  /* [any] */
  void log(uint32_t severity, const std::string& text) const { host_->log(host_, severity, text.c_str()); }
  std::string name() const { return host_->name ? host_->name : ""; }
  std::string version() const { return host_->version ? host_->version : ""; }

  /* [any] The option's text. The daemon has checked it against the description, so the numbers below parse.
   * An option that is not described throws std::invalid_argument. */
  std::string option(const char* name) const {
    const char* text = host_->option(host_, name);
    if (!text) throw std::invalid_argument(std::string("no option ") + name + " in the description");
    return text;
  }
  int64_t integer(const char* name) const { return std::strtoll(option(name).c_str(), nullptr, 10); }
  double number(const char* name) const { return std::strtod(option(name).c_str(), nullptr); }
  bool boolean(const char* name) const { return option(name) == "true"; }

  /* [any] */
  culprit_budget budget() const {
    culprit_budget budget = culprit_budget();
    budget.size = sizeof budget;
    host_->budget(host_, &budget);
    return budget;
  }

  /* [detector] Returns CULPRIT_OK or the daemon's error. Throws std::bad_alloc only. */
  int32_t emit(const Finding& finding) const {
    std::vector<culprit_value> values;
    std::vector<const culprit_value*> pointers;
    values.reserve(finding.values.size());
    for (const auto& value : finding.values) {
      values.push_back(culprit_value{sizeof(culprit_value), value.first.c_str(), value.second});
      pointers.push_back(&values.back());
    }
    culprit_detector_finding out = culprit_detector_finding();
    out.size = sizeof out;
    out.id = finding.id.c_str();
    out.title = finding.title.c_str();
    out.text = finding.text.c_str();
    out.category = finding.category.c_str();
    out.component = finding.component.c_str();
    out.symptom = finding.symptom.c_str();
    out.action = finding.action.c_str();
    out.remedy = finding.remedy.c_str();
    out.host = finding.host.c_str();
    out.job = finding.job.c_str();
    out.peer = finding.peer.c_str();
    out.part = finding.part.c_str();
    out.rank = finding.rank;
    out.device = finding.device;
    out.time_ns = finding.time_ns;
    out.confidence = finding.confidence;
    out.severity = finding.severity;
    out.state = finding.state;
    out.values = pointers.data();
    out.value_count = pointers.size();
#if CULPRIT_ABI_MINOR >= 1
    out.restart = finding.restart.c_str();
#endif
    return host_->emit(host_, &out);
  }

  /* The struct itself, for members that are newer than this header. */
  const culprit_host* raw() const { return host_; }

 private:
  const culprit_host* host_;
};

/* The base of a detector. Its constructor takes `const Host&`; one that throws means: not created. */
class Detector {
 public:
  explicit Detector(const Host& host) : host_(host) {}
  virtual ~Detector() {}
  Detector(const Detector&) = delete;
  Detector& operator=(const Detector&) = delete;

  /* [detector] Called for each event of a batch; the event is borrowed for the call. */
  virtual void observe(const culprit_event&) {}
  /* [detector] */
  virtual void tick(int64_t) {}
  /* [detector] State for a later instance, perhaps of another version; "" has none. */
  virtual std::string save_state() { return std::string(); }
  /* [detector] Throws if the state is not usable: the daemon then starts without it. */
  virtual void load_state(const std::string&) {}

 protected:
  const Host& host() const { return host_; }

 private:
  Host host_;
};

/* The body of an event whose kind is known: body<culprit_line>(event). */
template <class Body>
const Body& body(const culprit_event& event) {
  return *static_cast<const Body*>(event.body);
}

namespace detail {

/* Runs `call`; what it throws becomes a line of the log and an error. */
template <class Call>
int64_t guard(const Host& host, const char* where, Call call) noexcept {
  const char* what = "an exception that is no std::exception";
  int64_t error = CULPRIT_ERROR;
  try {
    return call();
  } catch (const std::bad_alloc&) {
    what = "out of memory";
    error = CULPRIT_ERROR_MEMORY;
  } catch (const std::exception& thrown) {
    try {
      host.log(CULPRIT_ERR, std::string(where) + ": " + thrown.what());
      return error;
    } catch (...) {
      what = "out of memory";
    }
  } catch (...) {
  }
  host.raw()->log(host.raw(), CULPRIT_ERR, what); /* without an allocation */
  return error;
}

/* A detector of class T behind the C struct. reset makes a new T. */
template <class T>
struct Adapter {
  culprit_detector face;
  Host host;
  std::unique_ptr<T> detector;
  std::string saved; /* of the call of save_state that asked for the size */

  explicit Adapter(const culprit_host* raw) : face(), host(raw), detector(new T(host)) {
    face.size = sizeof face;
    face.context = this;
    face.observe = &observe;
    face.tick = &tick;
    face.destroy = &destroy;
    face.reset = &reset;
    face.save_state = &save_state;
    face.load_state = &load_state;
  }

  static Adapter& of(culprit_detector* detector) { return *static_cast<Adapter*>(detector->context); }

  static int32_t observe(culprit_detector* detector, const culprit_event* const* events, uint64_t count) {
    Adapter& self = of(detector);
    return static_cast<int32_t>(guard(self.host, "observe", [&] {
      for (uint64_t i = 0; i < count; ++i) self.detector->observe(*events[i]);
      return CULPRIT_OK;
    }));
  }
  static int32_t tick(culprit_detector* detector, int64_t now_ns) {
    Adapter& self = of(detector);
    return static_cast<int32_t>(guard(self.host, "tick", [&] {
      self.detector->tick(now_ns);
      return CULPRIT_OK;
    }));
  }
  static void destroy(culprit_detector* detector) { delete &of(detector); }
  static int32_t reset(culprit_detector* detector) {
    Adapter& self = of(detector);
    return static_cast<int32_t>(guard(self.host, "reset", [&] {
      self.detector.reset(); /* first: both could own the same file or child */
      self.detector.reset(new T(self.host));
      return CULPRIT_OK;
    }));
  }
  static int64_t save_state(culprit_detector* detector, void* buffer, uint64_t capacity) {
    Adapter& self = of(detector);
    return guard(self.host, "save_state", [&]() -> int64_t {
      if (!buffer) self.saved = self.detector->save_state();
      if (buffer && self.saved.size() <= capacity) std::memcpy(buffer, self.saved.data(), self.saved.size());
      return static_cast<int64_t>(self.saved.size());
    });
  }
  static int32_t load_state(culprit_detector* detector, const void* state, uint64_t bytes) {
    Adapter& self = of(detector);
    return static_cast<int32_t>(guard(self.host, "load_state", [&] {
      self.detector->load_state(std::string(static_cast<const char*>(state), bytes));
      return CULPRIT_OK;
    }));
  }
};

template <class T>
culprit_detector* create(const culprit_host* host) {
  culprit_detector* made = nullptr;
  guard(Host(host), "create", [&] {
    made = &(new Adapter<T>(host))->face;
    return CULPRIT_OK;
  });
  return made;
}

}  // namespace detail
}  // namespace culprit

/* The entry of a plugin: the detector's class, and a culprit_description with static lifetime. Once per
 * library, outside of any namespace. */
#define CULPRIT_PLUGIN(Type, description)                                                                \
  extern "C" CULPRIT_EXPORT const culprit_plugin* culprit_plugin_entry_v1(void) {                        \
    static const culprit_plugin plugin = {sizeof(culprit_plugin),                                        \
                                          []() -> const culprit_description* { return &(description); }, \
                                          &culprit::detail::create<Type>};                               \
    return &plugin;                                                                                      \
  }

#endif
