// A test registers itself, and fails by an exception.
#pragma once

#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

struct Test {
  std::string name;
  std::function<void()> run;
};

inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

struct Registration {
  Registration(const char* name, std::function<void()> run) { tests().push_back({name, std::move(run)}); }
};

#define TEST(name)                                          \
  static void name();                                       \
  static const Registration name##_registration(#name, name); \
  static void name()

[[noreturn]] inline void fail(const std::string& what, const char* file, int line) {
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + what);
}

template <typename Found, typename Expected>
void check_equal(const Found& found, const Expected& expected, const char* expression, const char* file, int line) {
  if (found == expected) return;
  std::ostringstream text;
  text << expression << " is " << found << ", not " << expected;
  fail(text.str(), file, line);
}

#define CHECK(condition)                                   \
  do {                                                     \
    if (!(condition)) fail(#condition, __FILE__, __LINE__); \
  } while (false)
#define CHECK_EQUAL(found, expected) check_equal(found, expected, #found, __FILE__, __LINE__)
#define CHECK_CONTAINS(text, part)                                                                  \
  do {                                                                                              \
    const std::string in = (text);                                                                  \
    if (in.find(part) == std::string::npos) fail("'" + in + "' lacks '" + (part) + "'", __FILE__, __LINE__); \
  } while (false)

// Returns the exception of the type that the action throws.
template <typename Exception, typename Action>
Exception thrown(Action action) {
  try {
    action();
  } catch (const Exception& exception) {
    return exception;
  }
  throw std::runtime_error("nothing was thrown");
}
