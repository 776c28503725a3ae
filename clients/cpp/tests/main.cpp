// Runs all tests, or those whose names contain the argument.
#include <chrono>
#include <exception>
#include <iostream>

#include "check.hpp"

int main(int argc, char** argv) {
  int failed = 0;
  for (const auto& test : tests()) {
    if (argc > 1 && test.name.find(argv[1]) == std::string::npos) continue;
    const auto began = std::chrono::steady_clock::now();
    std::string problem;
    try {
      test.run();
    } catch (const std::exception& error) {
      problem = error.what();
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
    std::cout << (problem.empty() ? "PASS " : "FAIL ") << test.name << ' ' << seconds.count() << ' ' << problem << std::endl;
    failed += !problem.empty();
  }
  return failed != 0;
}
