// From one stack to another without the operating system, where this processor's way is written down. For
// block_simulator.cpp alone: it defines the function.
#pragma once

// Switching by ucontext makes a system call for the signal mask, some 400 ns; this takes 10.
#if defined(__x86_64__) && !defined(__SHSTK__)
#define LOCKSTEP_OWN_SWITCH 1
asm(R"(
.text
.type lockstep_switch_stack,@function
lockstep_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size lockstep_switch_stack,.-lockstep_switch_stack
)");
// Saves the registers a call must keep and the stack pointer to *from, goes on where `to` was saved.
extern "C" void lockstep_switch_stack(void** from, void* to);
#endif
