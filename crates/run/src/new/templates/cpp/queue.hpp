// A queue from one thread to one other, without a lock: neither ever waits for the other.
#ifndef QUEUE_HPP
#define QUEUE_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

template <typename T, std::size_t SLOTS> class Queue {
	static_assert(SLOTS > 0 && (SLOTS & (SLOTS - 1)) == 0, "a power of two");

public:
	// Of the one end. A full queue drops and counts.
	void push(const T &value) noexcept
	{
		const std::size_t at = pushed.load(std::memory_order_relaxed);

		if (at - popped.load(std::memory_order_acquire) == SLOTS) {
			lost++;
			return;
		}
		slots[at % SLOTS] = value;
		pushed.store(at + 1, std::memory_order_release);
	}

	// Of the other end. False: empty.
	bool pop(T &value) noexcept
	{
		const std::size_t at = popped.load(std::memory_order_relaxed);

		if (at == pushed.load(std::memory_order_acquire))
			return false;
		value = slots[at % SLOTS];
		popped.store(at + 1, std::memory_order_release);
		return true;
	}

	// After the pushing thread has ended.
	std::uint64_t dropped() const noexcept { return lost; }

private:
	// Each on a cache line of its own.
	alignas(64) std::atomic<std::size_t> pushed{0};
	alignas(64) std::atomic<std::size_t> popped{0};
	alignas(64) std::uint64_t lost = 0;
	T slots[SLOTS];
};

#endif
