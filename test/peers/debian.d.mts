export declare function debianKubectl(): string;
