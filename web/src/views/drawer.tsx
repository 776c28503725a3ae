export function Drawer({ onClose }: { onClose: () => void }) { return <button onClick={onClose}>x</button>; }
