// Registration of the CPU backend: one function per family of kernels, each called by register_cpu.
#pragma once

#include "fornax/core/op.h"

namespace fornax::cpu {

void register_cpu();
void register_pointwise(const KernelTable& table);
void register_random(const KernelTable& table);
void register_factory(const KernelTable& table);
void register_reduce(const KernelTable& table);
void register_scan(const KernelTable& table);
void register_softmax(const KernelTable& table);
void register_norm(const KernelTable& table);
void register_loss(const KernelTable& table);
void register_order_statistics(const KernelTable& table);
void register_optim(const KernelTable& table);
void register_index(const KernelTable& table);
void register_index_tensor(const KernelTable& table);
void register_sort(const KernelTable& table);
void register_matmul(const KernelTable& table);
void register_pooling(const KernelTable& table);
void register_convolution(const KernelTable& table);

}  // namespace fornax::cpu
