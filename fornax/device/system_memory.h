// How much memory the machine, or the control group this process is in, has.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fornax::cpu_memory {

// Bytes of physical memory, or of the control group's limit where that is lower. Found once.
uint64_t physical_memory();

// False if `bytes` more cannot be backed by memory and swap when this process already holds `held`
// bytes. With `now` the machine is also asked what is available at this moment (some 20 us).
bool has_room_for(size_t bytes, size_t held, bool now);

}  // namespace fornax::cpu_memory
