// SPDX-License-Identifier: MIT OR Apache-2.0
// rtproof_mark.h for C++11 and later: a ring that its destructor closes, and a cycle that ends with
// its scope. Open a Mark in the thread that it marks, before the thread is real-time.
#ifndef RTPROOF_MARK_HPP
#define RTPROOF_MARK_HPP
#include "rtproof_mark.h"

#include <string>

namespace rtproof {

class Mark {
public:
	// A word that tells the threads of a process apart, or a path. Without a ring, which
	// is_open() tells, marks do nothing.
	explicit Mark(const std::string &word = std::string())
		: name(word), ring(rtproof_mark_open(name.empty() ? nullptr : name.c_str()))
	{
	}
	~Mark() { rtproof_mark_close(ring, name.empty() ? nullptr : name.c_str()); }
	Mark(const Mark &) = delete;
	Mark &operator=(const Mark &) = delete;

	bool is_open() const noexcept { return ring != nullptr; }
	void begin() noexcept { rtproof_mark_begin(ring); }
	void end() noexcept { rtproof_mark_end(ring); }

private:
	std::string name;
	struct rtproof_mark *ring;
};

// Marks from here to the end of the scope.
class Cycle {
public:
	explicit Cycle(Mark &marked) noexcept : mark(marked) { mark.begin(); }
	~Cycle() { mark.end(); }
	Cycle(const Cycle &) = delete;
	Cycle &operator=(const Cycle &) = delete;

private:
	Mark &mark;
};

} // namespace rtproof
#endif
