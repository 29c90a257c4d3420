/* SPDX-License-Identifier: MIT */
/* The plant `smi`; a part of rtproof_plant.c. */

#ifdef HAVE_SMI
/*
 * System management interrupts of a chosen length. QEMU enters system management mode when port
 * 0xb2 is written to, on the CPU that writes. SeaBIOS moves the boot CPU's handler to SMRAM
 * (0xa8000) and leaves SMRAM unlocked; the other CPUs keep the address of reset, 0x38000, in
 * ordinary memory, which is put back after each interrupt, and so is where their state is saved.
 */
#define SMI_PORT 0xb2
#define SMRAM_REGISTER 0x9d /* of the host bridge (8086:29c0) */
#define SMRAM_OPEN 0x40
#define SMRAM_LOCKED 0x10
#define SMRAM_HANDLER 0xa8000
#define RESET_HANDLER 0x38000
#define RESET_STATE 0x3fe00
#define STATE_BYTES 512

/* Counts time stamps in 16-bit mode; the number of cycles stands at HANDLER_CYCLES. */
static u8 handler[] = {
	0x0f, 0x31,			/* rdtsc */
	0x66, 0x89, 0xc3,		/* mov ebx, eax */
	0x0f, 0x31,			/* again: rdtsc */
	0x66, 0x29, 0xd8,		/* sub eax, ebx */
	0x66, 0x3d, 0, 0, 0, 0,		/* cmp eax, cycles */
	0x72, 0xf3,			/* jb again */
	0x0f, 0xaa,			/* rsm */
};
#define HANDLER_CYCLES 12
static u8 smram_before[sizeof(handler)];
static u8 memory_before[sizeof(handler)];
static u8 state_before[STATE_BYTES];

static int smram_exchange(u8 *old, const u8 *new)
{
	struct pci_dev *bridge = pci_get_domain_bus_and_slot(0, 0, 0);
	void __iomem *smram;
	u8 mode;
	int err = -ENODEV;

	if (!bridge)
		return err;
	if (bridge->vendor != PCI_VENDOR_ID_INTEL || bridge->device != 0x29c0)
		goto out_bridge;
	err = -EPERM;
	pci_read_config_byte(bridge, SMRAM_REGISTER, &mode);
	if (mode & SMRAM_LOCKED)
		goto out_bridge;
	err = -ENOMEM;
	smram = ioremap(SMRAM_HANDLER, sizeof(handler));
	if (!smram)
		goto out_bridge;
	pci_write_config_byte(bridge, SMRAM_REGISTER, mode | SMRAM_OPEN);
	if (old)
		memcpy_fromio(old, smram, sizeof(handler));
	memcpy_toio(smram, new, sizeof(handler));
	pci_write_config_byte(bridge, SMRAM_REGISTER, mode);
	iounmap(smram);
	err = 0;
out_bridge:
	pci_dev_put(bridge);
	return err;
}

static int smi_prepare(void)
{
	u32 cycles = tsc_khz / 1000 * plant.us;

	memcpy(handler + HANDLER_CYCLES, &cycles, sizeof(cycles));
	return smram_exchange(smram_before, handler);
}

static void smi_clean_up(void)
{
	smram_exchange(NULL, smram_before);
}

static void smi_raise(struct occurrence *o)
{
	u8 *code = phys_to_virt(RESET_HANDLER), *state = phys_to_virt(RESET_STATE);
	unsigned long flags;

	local_irq_save(flags);
	memcpy(memory_before, code, sizeof(handler));
	memcpy(state_before, state, STATE_BYTES);
	memcpy(code, handler, sizeof(handler));
	o->begin_ns = ktime_get_ns();
	outb(0, SMI_PORT);
	o->end_ns = ktime_get_ns();
	memcpy(code, memory_before, sizeof(handler));
	memcpy(state, state_before, STATE_BYTES);
	local_irq_restore(flags);
}
#else
static int smi_prepare(void) { return -EOPNOTSUPP; }
static void smi_clean_up(void) { }
static void smi_raise(struct occurrence *o) { }
#endif
